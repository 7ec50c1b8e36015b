//! Rows 8 and 9: the cost of starting a child, and the time to the first delta of many.

use anyhow::Result;

use super::Bench;
use crate::{client::Side, sample::Sample, script::Load, table::Figure};

const CHILDREN: u32 = 1000;

pub(super) fn cpu(bench: &Bench) -> Result<Vec<Figure>> {
    let load = Load::new(CHILDREN, 1);
    let take = |side| {
        let cpu = Sample::over_http(side, bench.server.url(), &load)?.cpu;
        Ok(cpu.as_secs_f64() * 1e6 / f64::from(CHILDREN))
    };
    let pairs = bench.pairs(10, || take(Side::Mainstem), || take(Side::Bare))?;
    let (ours, bare) = (pairs.ours(), pairs.theirs());
    let what = format!("CPU to start a child above bare: {ours:.0} − {bare:.0} µs");
    Ok(vec![Figure::new(what, pairs.difference(), " µs").at_most(100.0)])
}

pub(super) fn first_event(bench: &Bench) -> Result<Vec<Figure>> {
    let load = Load::new(CHILDREN, 50);
    let take = |side| Ok(Sample::over_http(side, bench.server.url(), &load)?.first.as_secs_f64() * 1e3);
    let pairs = bench.pairs(10, || take(Side::Mainstem), || take(Side::Bare))?;
    let (ours, bare) = (pairs.ours(), pairs.theirs());
    let what = format!("first delta of {CHILDREN} children ÷ bare: {ours:.1} ÷ {bare:.1} ms");
    Ok(vec![Figure::new(what, pairs.ratio(), "").at_most(1.2)])
}
