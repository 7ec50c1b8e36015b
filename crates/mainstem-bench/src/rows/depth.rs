//! Row 4: an event of an agent three levels down costs what one of a child costs.

use anyhow::Result;

use super::Bench;
use crate::{client::ClientKind, sample::Sample, script::Load, table::Figure};

const DEEP: u16 = 3;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let (inside, outside) = (Load::new(10, bench.scaled(20_000)), Load::new(10, bench.scaled(2000)));
    let url = bench.server.url();
    Ok(vec![
        ratio(bench, "in process", |depth| Sample::in_process(&inside.at_depth(depth)))?,
        ratio(bench, "over HTTP", |depth| {
            Sample::over_http(ClientKind::Mainstem, url, &outside.at_depth(depth))
        })?,
    ])
}

fn ratio(bench: &Bench, name: &str, measure: impl Fn(u16) -> Result<Sample>) -> Result<Figure> {
    let measure = |depth| Ok(measure(depth)?.per_delta());
    let pairs = bench.pairs(60, || measure(DEEP), || measure(1))?;
    let (deep, shallow) = (pairs.ours(), pairs.theirs());
    let label = format!("CPU per event, depth {DEEP} ÷ 1, {name}: {deep:.2} ÷ {shallow:.2} µs");
    Ok(Figure::new(label, pairs.ratio(), "").at_most(1.03).limited_to(1.1))
}
