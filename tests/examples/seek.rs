//! How long it takes to know what a fleet was doing after an earlier event, in a session of a
//! million events: the first time, and later.
//!
//! `cargo run --release -p mainstem-tests --example seek`
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]

use std::{path::Path, time::Instant};

use futures_util::StreamExt;
use mainstem::{journal::SqliteJournal, model::scripted::Turn, prelude::*};

/// The deltas of the session.
const DELTAS: usize = 1_000_000;

#[tokio::main]
async fn main() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let harness = harness(&path);
    let events = harness.open_session("s").await.unwrap().run("go").unwrap().count().await;
    drop(harness);
    let session = self::harness(&path).open_session("s").await.unwrap();
    let last = session.log().last_seq();
    println!("{events} events");
    let mut seeks = vec![last];
    // A sequence that visits all parts, the same each time.
    seeks.extend((1..=100).map(|number| number * 618_034 % last));
    let mut took = Vec::new();
    for seq in seeks {
        let began = Instant::now();
        assert_eq!(session.fleet_at(seq).await.unwrap().seq, seq);
        took.push(began.elapsed());
    }
    let first = took.remove(0);
    took.sort();
    println!("the first: {first:.0?}; of 100 later ones p50 {:.0?}, the longest {:.0?}", took[50], took[99]);
}

fn harness(journal: &Path) -> Harness {
    let model = ScriptedModel::new().agent("main", [Turn::new().repeat("some words ", DELTAS)]);
    Harness::builder("main", model).with_journal(SqliteJournal::open(journal).unwrap()).build().unwrap()
}
