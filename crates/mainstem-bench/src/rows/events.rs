//! Rows 1 to 3: processor time for a child's event, compared with the bare client.

use std::time::Duration;

use anyhow::Result;

use super::Bench;
use crate::{client::ClientKind, sample::Sample, script::Load, table::Figure, wire::Wire};

pub(super) fn few(bench: &Bench) -> Result<Vec<Figure>> {
    of_all_wires(bench, 20, &[Load::new(10, 1000), Load::new(100, 200)])
}

pub(super) fn many(bench: &Bench) -> Result<Vec<Figure>> {
    of_all_wires(bench, 10, &[Load::new(1000, 50)])
}

pub(super) fn paced(bench: &Bench) -> Result<Vec<Figure>> {
    let pace = Duration::from_millis(1);
    let deltas = bench.scaled(1000);
    let loads = [Load::new(10, deltas).paced(pace), Load::new(100, deltas).paced(pace)];
    loads.iter().map(|load| ratio(bench, 5, load)).collect()
}

fn of_all_wires(bench: &Bench, times: u32, loads: &[Load]) -> Result<Vec<Figure>> {
    let each = loads.iter().flat_map(|load| Wire::ALL.map(|wire| load.over(wire)));
    each.map(|load| ratio(bench, times, &load)).collect()
}

fn ratio(bench: &Bench, times: u32, load: &Load) -> Result<Figure> {
    let measure = |kind| Ok(Sample::over_http(kind, bench.server.url(), load)?.per_delta());
    let pairs = bench.pairs(times, || measure(ClientKind::Mainstem), || measure(ClientKind::Bare))?;
    let pace = if load.say.pace > 0 { ", paced 1 ms" } else { "" };
    let (ours, bare) = (pairs.ours(), pairs.theirs());
    let (wire, children) = (load.wire.label(), load.children);
    let label = format!("CPU per event ÷ bare, {wire}, K = {children}{pace}: {ours:.2} ÷ {bare:.2} µs");
    Ok(Figure::new(label, pairs.ratio(), "").at_most(1.15))
}
