//! Nodes that share a database: who writes a session, what the others read, and what faults do.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "tests and what they share")]

mod faults;
mod relayed;
mod schema;
mod secure;
mod sharing;

use std::{sync::Arc, time::Duration};

use mainstem_event::{AgentEvent, EventKind, SessionLog};
use mainstem_journal::Journal;
use mainstem_postgres::{Node, Settings};
use mainstem_testing::journal::{open_log, read_all};

/// The lease of the nodes of these tests: long enough for a machine under load.
const LEASE: Duration = Duration::from_secs(2);

async fn join(url: &str) -> Node {
    Node::join(Settings::parse(url).unwrap().with_lease(LEASE)).await.unwrap()
}

/// Opens a session as soon as it is free.
async fn take(node: &Node, session: &str) -> Arc<SessionLog> {
    let (journal, id) = (node.journal(), session.parse().unwrap());
    for _ in 0..200 {
        match journal.open(&id).await {
            Ok(record) => {
                drop(record);
                return open_log(&journal, session).await;
            }
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{session} is not free");
}

/// Returns the texts of a session's deltas, and checks that its events have all numbers once.
async fn texts(node: &Node, session: &str) -> Vec<String> {
    let events = read_all(&node.journal(), session).await;
    let seqs: Vec<_> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
    events.iter().filter_map(text).collect()
}

fn text(event: &AgentEvent) -> Option<String> {
    match &event.kind {
        EventKind::TextBlockDelta { delta, .. } => Some(delta.to_string()),
        _ => None,
    }
}
