//! Row 7: the memory of a child that waits for its model.

use anyhow::Result;

use super::Bench;
use crate::{client::Side, probe, table::Figure};

const CHILDREN: u32 = 1000;

pub(super) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let url = bench.server.url();
    let take = |side| Ok(probe::waiting(side, CHILDREN, url)? as f64 / f64::from(CHILDREN) / 1024.0);
    let (bare, ours) = bench.medians(5, || take(Side::Bare), || take(Side::Mainstem))?;
    let what = format!("memory per waiting child above bare, K = {CHILDREN}: {ours:.1} − {bare:.1} KiB");
    Ok(vec![Figure::new(what, ours - bare, " KiB").at_most(8.0)])
}
