//! Row 7: the memory of a child that waits for its model.

use anyhow::Result;

use super::Bench;
use crate::{client::ClientKind, probe, table::Figure};

const CHILDREN: u32 = 1000;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let url = bench.server.url();
    let measure = |kind| Ok(probe::waiting(kind, CHILDREN, url)? as f64 / f64::from(CHILDREN) / 1024.0);
    let pairs = bench.pairs(5, || measure(ClientKind::Mainstem), || measure(ClientKind::Bare))?;
    let (ours, bare) = (pairs.ours(), pairs.theirs());
    let label = format!("memory per waiting child above bare, K = {CHILDREN}: {ours:.1} − {bare:.1} KiB");
    Ok(vec![Figure::new(label, pairs.difference(), " KiB").at_most(4.0)])
}
