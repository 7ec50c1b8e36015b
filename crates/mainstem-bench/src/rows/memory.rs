//! Row 7: the memory of a child that waits for its model.

use anyhow::Result;

use super::Bench;
use crate::{client::Side, probe, table::Figure};

const CHILDREN: u32 = 1000;

pub(super) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let url = bench.server.url();
    let take = |side| Ok(probe::waiting(side, CHILDREN, url)? as f64 / f64::from(CHILDREN) / 1024.0);
    let pairs = bench.pairs(5, || take(Side::Mainstem), || take(Side::Bare))?;
    let (ours, bare) = (pairs.ours(), pairs.theirs());
    let what = format!("memory per waiting child above bare, K = {CHILDREN}: {ours:.1} − {bare:.1} KiB");
    Ok(vec![Figure::new(what, pairs.difference(), " KiB").at_most(8.0)])
}
