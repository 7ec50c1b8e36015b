//! Row 14: a fleet on two worker threads takes what it takes on one.

use anyhow::Result;

use super::Bench;
use crate::{client::ClientKind, sample::Sample, script::Load, table::Figure};

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let loads = [Load::new(10, 1000), Load::new(100, 200), Load::new(1000, 50)];
    loads.iter().map(|load| ratio(bench, load)).collect()
}

fn ratio(bench: &Bench, load: &Load) -> Result<Figure> {
    let measure = |threads| {
        Ok(Sample::on_threads(threads, ClientKind::Mainstem, bench.server.url(), load)?.per_delta())
    };
    let pairs = bench.pairs(10, || measure(2), || measure(1))?;
    let (two, one) = (pairs.ours(), pairs.theirs());
    let label = format!("CPU per event, two threads ÷ one, K = {}: {two:.2} ÷ {one:.2} µs", load.children);
    Ok(Figure::new(label, pairs.ratio(), "").at_most(1.3))
}
