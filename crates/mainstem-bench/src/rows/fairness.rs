//! Row 11: of many children that always have text to send, none falls far behind.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use futures_util::StreamExt;
use mainstem::event::EventKind;

use super::Bench;
use crate::{
    fleet::{Fleet, is_leaf},
    sample::block_on,
    script::Load,
    table::Figure,
};

const CHILDREN: u32 = 1000;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let load = Load::new(CHILDREN, bench.scaled(500));
    let share = block_on(slowest(&load))?;
    let label = format!("share of the slowest of {CHILDREN} ready children at half time");
    Ok(vec![Figure::new(label, share * 100.0, " %").at_least(30.0)])
}

/// Returns the share of its text that the slowest child has sent when half of all text is sent.
async fn slowest(load: &Load) -> Result<f64> {
    let mut run = Fleet::scripted(load)?.start(load);
    let (mut said, mut all) = (HashMap::new(), 0);
    while let Some(event) = run.next().await {
        if is_leaf(&event) && matches!(event.kind, EventKind::TextBlockDelta { .. }) {
            *said.entry(event.agent_key().cloned()).or_insert(0_u32) += 1;
            all += 1;
        }
        if all == load.deltas() / 2 {
            break;
        }
    }
    ensure!(all == load.deltas() / 2, "only {all} of {} deltas", load.deltas());
    let is_complete = said.len() == load.children as usize;
    let least = said.into_values().min().filter(|_| is_complete).unwrap_or(0);
    Ok(f64::from(least) / f64::from(load.say.deltas))
}
