//! The contract of `Journal`: retention, lookups, claims, checkpoints, deletion and close.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, future::join_all};
use mainstem_event::{AgentEvent, EventKind, EventSink, Outcome, SessionLog, Timestamp};
use mainstem_journal::{CLAIM_LASTS, Checkpoint, Claim, Claimed, Journal, Retention, RunPlace};
use mainstem_message::SessionId;

use super::child;
use crate::journal::{agent_end, agent_start, emit_run, open_log, read_all, root_sink, text_delta};

/// Returns a log of four runs of ten events, and the sink of a task that has begun before the last
/// of them, as event 31, and is still running.
async fn four_runs_and_a_task(journal: &dyn Journal) -> (Arc<SessionLog>, EventSink) {
    let log = open_log(journal, "r").await;
    (0..3).for_each(|n| emit_run(&log, &n.to_string(), 8));
    let background = child(&root_sink(&log, "3"), "task");
    background.emit(agent_start());
    emit_run(&log, "3", 8);
    journal.flush().await.unwrap();
    (log, background)
}

pub(super) async fn the_size_of_a_session_is_that_of_its_events(journal: &dyn Journal) {
    let log = open_log(journal, "size").await;
    emit_run(&log, "1", 30);
    journal.flush().await.unwrap();
    let sizes = journal.sizes().await.unwrap();
    let size =
        |name: &str| sizes.iter().find(|(session, _)| session.as_str() == name).map(|(_, bytes)| *bytes);
    let bytes = |events: Vec<AgentEvent>| events.iter().map(|event| event.to_json().len() as u64).sum();
    assert_eq!(size("size"), Some(bytes(read_all(journal, "size").await)));
    for session in journal.sessions().await.unwrap().iter().filter(|session| session.damage.is_none()) {
        let events = read_all(journal, session.id.as_str()).await;
        assert_eq!(size(session.id.as_str()).unwrap_or(0), bytes(events), "{}", session.id);
    }
    drop(log);
    assert!(journal.delete(&"size".parse().unwrap()).await.unwrap());
}

pub(super) async fn retention_drops_whole_invocations(journal: &dyn Journal) {
    let id: SessionId = "r".parse().unwrap();
    let (log, background) = four_runs_and_a_task(journal).await;
    // Applies a retention this many seconds later. Returns the first number that is left, and
    // whether events of any session were dropped.
    let retain = async |retention: Retention, seconds: u64| {
        let now = Timestamp::from_micros(log.clock().now().as_micros() + seconds * 1_000_000);
        let dropped = journal.retain(&retention, now).await.unwrap();
        (journal.session(&id).await.unwrap().unwrap().first, dropped > 0)
    };
    let max = |events| Retention::all().with_max_events(events);
    assert_eq!(retain(Retention::all(), 1_000_000).await, (1, false));
    assert_eq!(retain(max(1_000_000), 0).await, (1, false));
    journal.store_moment(&id, Checkpoint { seq: 30, state: String::new() }).await.unwrap();
    // 25 of 41 events may stay. The cut at 16 is within the second run, which stays whole.
    assert_eq!(retain(max(25), 0).await, (11, true));
    assert_eq!(retain(max(25), 0).await, (11, false), "once");
    assert_eq!(journal.moment(&id, 41).await.unwrap(), None, "it has what was dropped");
    let gap = log.subscribe_from(1).next().await.unwrap();
    assert!(matches!(gap.kind, EventKind::Gap { from_seq: 1, to_seq: 10, missed: 10, .. }), "{gap}");
    // All events are older than a day, but the task is still running.
    let day = Retention::all().with_max_age(Duration::from_secs(86_400));
    assert_eq!(retain(day, 3_600).await, (11, false));
    assert_eq!(retain(day, 90_000).await, (31, true));
    assert_eq!(read_all(journal, "r").await[0].seq, 31);
    background.emit(agent_end());
    journal.flush().await.unwrap();
    assert_eq!(retain(day, 90_000).await, (43, true));
    let empty = journal.session(&id).await.unwrap().unwrap();
    assert_eq!((empty.events(), empty.last, empty.runs), (0, 42, 4));
    let gap = log.subscribe_from(1).next().await.unwrap();
    assert!(matches!(gap.kind, EventKind::Gap { from_seq: 1, to_seq: 34, missed: 34, .. }), "{gap}");
    assert_eq!(log.emit(text_delta("on")), 43);
}

pub(super) async fn runs_are_found_by_their_ids(journal: &dyn Journal) {
    let log = open_log(journal, "runs").await;
    emit_run(&log, "found-1", 2);
    emit_run(&log, "found-2", 0);
    journal.flush().await.unwrap();
    let place = |first| Some(RunPlace { session: "runs".parse().unwrap(), first });
    assert_eq!(journal.run(&"found-1".parse().unwrap()).await.unwrap(), place(1));
    assert_eq!(journal.run(&"found-2".parse().unwrap()).await.unwrap(), place(5));
    assert_eq!(journal.run(&"found-3".parse().unwrap()).await.unwrap(), None);
    drop(log);
    assert!(journal.delete(&"runs".parse().unwrap()).await.unwrap());
    assert_eq!(journal.run(&"found-1".parse().unwrap()).await.unwrap(), None);
}

pub(super) async fn a_key_is_claimed_once(journal: &dyn Journal) {
    let claim = |key: &str, digest: &str, run: &str, at: u64| Claim {
        key: key.to_owned(),
        digest: digest.to_owned(),
        session: "claims".parse().unwrap(),
        run: run.parse().unwrap(),
        at: Timestamp::from_micros(at),
    };
    let same = || Claimed::Same { session: "claims".parse().unwrap(), run: "claim-1".parse().unwrap() };
    // Any number at once: exactly one is the first.
    let all = (1..=20).map(|_| journal.claim(claim("k", "d", "claim-1", 5)));
    let all = join_all(all).await.into_iter().map(Result::unwrap);
    assert_eq!(all.filter(|claimed| *claimed == Claimed::New).count(), 1);
    assert_eq!(journal.claim(claim("k", "d", "claim-2", 6)).await.unwrap(), same());
    assert_eq!(journal.claim(claim("k", "other", "claim-2", 6)).await.unwrap(), Claimed::Other);
    let log = open_log(journal, "claims").await;
    emit_run(&log, "claim-1", 1);
    journal.flush().await.unwrap();
    assert_eq!(journal.claim(claim("k", "d", "claim-2", 7)).await.unwrap(), same());
    // It is removed after a day, and with its session.
    let day = CLAIM_LASTS.as_micros() as u64;
    assert_eq!(journal.claim(claim("k", "d", "claim-2", 5 + day)).await.unwrap(), same());
    assert_eq!(journal.claim(claim("k", "d", "claim-2", 6 + day)).await.unwrap(), Claimed::New);
    drop(log);
    assert!(journal.delete(&"claims".parse().unwrap()).await.unwrap());
    assert_eq!(journal.claim(claim("k", "d", "claim-3", 7 + day)).await.unwrap(), Claimed::New);
}

pub(super) async fn the_latest_checkpoint_is_stored(journal: &dyn Journal) {
    let id = "checkpoints".parse().unwrap();
    let at = |seq: u64| Checkpoint { seq, state: format!("as of {seq}") };
    journal.store_checkpoint(&id, at(0)).await.unwrap();
    assert_eq!(journal.checkpoint(&id).await.unwrap(), None, "there is no such session");
    let log = open_log(journal, "checkpoints").await;
    emit_run(&log, "checked-1", 2);
    emit_run(&log, "checked-2", 2);
    journal.flush().await.unwrap();
    for (seq, expected) in [(4, Some(at(4))), (8, Some(at(8))), (9, Some(at(8)))] {
        journal.store_checkpoint(&id, at(seq)).await.unwrap();
        assert_eq!(journal.checkpoint(&id).await.unwrap(), expected, "{seq}");
    }
    drop(log);
    assert!(journal.delete(&id).await.unwrap());
    assert_eq!(journal.checkpoint(&id).await.unwrap(), None);
}

pub(super) async fn states_of_earlier_moments_are_stored(journal: &dyn Journal) {
    let id = "moments".parse().unwrap();
    let at = |seq: u64| Checkpoint { seq, state: format!("as of {seq}") };
    journal.store_moment(&id, at(4)).await.unwrap();
    assert_eq!(journal.moment(&id, 4).await.unwrap(), None, "there is no such session");
    let log = open_log(journal, "moments").await;
    (0..3).for_each(|n| emit_run(&log, &format!("moment-{n}"), 2));
    journal.flush().await.unwrap();
    for seq in [8, 4] {
        journal.store_moment(&id, at(seq)).await.unwrap();
    }
    let again = Checkpoint { state: "again".to_owned(), ..at(4) };
    journal.store_moment(&id, again.clone()).await.unwrap();
    let expected =
        [(3, None), (4, Some(again.clone())), (7, Some(again)), (8, Some(at(8))), (99, Some(at(8)))];
    for (seq, expected) in expected {
        assert_eq!(journal.moment(&id, seq).await.unwrap(), expected, "{seq}");
    }
    drop(log);
    assert!(journal.delete(&id).await.unwrap());
    assert_eq!(journal.moment(&id, 99).await.unwrap(), None);
    drop(open_log(journal, "moments").await);
    assert_eq!(journal.moment(&id, 99).await.unwrap(), None, "a new one of the same name");
}

pub(super) async fn a_deleted_session_begins_anew(journal: &dyn Journal) {
    let id: SessionId = "x".parse().unwrap();
    emit_run(&open_log(journal, "x").await, "1", 1);
    assert!(journal.delete(&id).await.unwrap());
    assert!(!journal.delete(&id).await.unwrap());
    assert_eq!(journal.session(&id).await.unwrap(), None);
    let log = open_log(journal, "x").await;
    assert_eq!(log.last_seq(), 0, "a new one of the same name");
    emit_run(&log, "1", 1);
    journal.flush().await.unwrap();
    assert_eq!(read_all(journal, "x").await.len(), 3);
}

pub(super) async fn a_log_fails_after_the_close(journal: &dyn Journal) {
    let log = open_log(journal, "z").await;
    let mut reader = log.attach();
    emit_run(&log, "1", 1);
    journal.close().await.unwrap();
    assert_eq!(log.failure(), None);
    emit_run(&log, "2", 1);
    let read: Vec<_> = reader.by_ref().take(6).collect().await;
    let outcomes: Vec<_> = read
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::AgentEnd { outcome, .. } => Some(*outcome),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes, [Outcome::Success, Outcome::Error]);
    assert!(log.failure().unwrap().contains("closed"), "{:?}", log.failure());
    assert_eq!(read_all(journal, "z").await.len(), 3, "recorded events can be read");
    assert!(journal.open(&"new".parse().unwrap()).await.is_err());
}
