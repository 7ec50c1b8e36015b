//! Rows 8, 9 and 15: the cost of starting a child, and the time to the first delta, of many
//! children and of a process.

use anyhow::Result;

use super::Bench;
use crate::{client::ClientKind, probe, sample::Sample, script::Load, table::Figure};

const CHILDREN: u32 = 1000;

pub(super) fn cpu(bench: &Bench) -> Result<Vec<Figure>> {
    let load = Load::new(CHILDREN, 1);
    let measure = |kind| {
        let cpu = Sample::over_http(kind, bench.server.url(), &load)?.cpu;
        Ok(cpu.as_secs_f64() * 1e6 / f64::from(CHILDREN))
    };
    let pairs = bench.pairs(10, || measure(ClientKind::Mainstem), || measure(ClientKind::Bare))?;
    let (ours, bare) = (pairs.ours(), pairs.theirs());
    let label = format!("CPU to start a child above bare: {ours:.0} − {bare:.0} µs");
    Ok(vec![Figure::new(label, pairs.difference(), " µs").at_most(50.0)])
}

pub(super) fn first_event(bench: &Bench) -> Result<Vec<Figure>> {
    let load = Load::new(CHILDREN, 50);
    let measure = |kind| Ok(Sample::over_http(kind, bench.server.url(), &load)?.first.as_secs_f64() * 1e3);
    let pairs = bench.pairs(10, || measure(ClientKind::Mainstem), || measure(ClientKind::Bare))?;
    let (ours, bare) = (pairs.ours(), pairs.theirs());
    let label = format!("first delta of {CHILDREN} children ÷ bare: {ours:.1} ÷ {bare:.1} ms");
    Ok(vec![Figure::new(label, pairs.ratio(), "").at_most(1.2)])
}

pub(super) fn first_run(bench: &Bench) -> Result<Vec<Figure>> {
    let measure = |kind| Ok(probe::first(kind, bench.server.url())? / 1e3);
    let pairs = bench.pairs(20, || measure(ClientKind::Mainstem), || measure(ClientKind::Bare))?;
    let (ours, bare) = (pairs.ours(), pairs.theirs());
    let label = format!("first delta of a process above bare: {ours:.2} − {bare:.2} ms");
    Ok(vec![Figure::new(label, pairs.difference(), " ms").at_most(2.0)])
}
