//! Row 10: a caller that stops reading loses nothing, and the children wait for it.

use anyhow::Result;

use super::Bench;
use crate::{probe, script::Load, table::Figure};

pub(super) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let (seconds, load) = (bench.scaled(10), Load::new(100, bench.scaled(2000)));
    let stalled = probe::stall(seconds.into(), &load, bench.server.url())?;
    let growth = stalled.growth as f64 / f64::from(load.children) / 1024.0;
    let what = |what| format!("caller stalls {seconds} s, K = {}: {what}", load.children);
    Ok(vec![
        Figure::new(what("events lost"), stalled.lost as f64, "").at_most(0.0),
        Figure::new(what("memory growth per child"), growth, " KiB").at_most(64.0),
    ])
}
