//! Row 10: a caller that pauses loses no events, and producers wait.

use anyhow::Result;

use super::Bench;
use crate::{probe, script::Load, table::Figure};

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let (seconds, load) = (bench.scaled(10), Load::new(100, bench.scaled(2000)));
    let stalled = probe::stall(seconds.into(), &load, bench.server.url())?;
    let growth = stalled.growth as f64 / f64::from(load.children) / 1024.0;
    let label = |metric| format!("caller stalls {seconds} s, K = {}: {metric}", load.children);
    Ok(vec![
        Figure::new(label("events lost"), stalled.lost as f64, "").at_most(0.0),
        Figure::new(label("memory growth per child"), growth, " KiB").at_most(64.0),
    ])
}
