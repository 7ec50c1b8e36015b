//! The contract of `Journal`.
#![expect(clippy::unwrap_used, reason = "a suite of tests")]

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, future::join_all};
use mainstem_event::{
    AgentEvent, EventKind, EventSink, EventSource, LogOptions, Origin, Outcome, Rollup, SessionLog, Timestamp,
};
use mainstem_journal::{
    CLAIM_LASTS, Checkpoint, Claim, Claimed, Journal, JournalError, MemoryJournal, Retention, RunPlace,
};
use mainstem_message::{Message, Role, SessionId};

use crate::FakeClock;

/// Checks the whole contract over an empty journal, which it closes at the end.
///
/// # Panics
/// If the journal breaks it.
pub async fn check(journal: Arc<dyn Journal>) {
    a_session_begins_with_its_first_event(&*journal).await;
    a_session_goes_on_where_it_stopped(&*journal).await;
    one_writes_at_a_time(&*journal).await;
    readers_see_only_what_is_kept(&*journal).await;
    any_reader_has_the_same_events(&*journal).await;
    many_sessions_at_once(&*journal).await;
    retention_drops_whole_invocations(&*journal).await;
    runs_are_found_by_their_ids(&*journal).await;
    a_key_is_claimed_once(&*journal).await;
    the_latest_checkpoint_is_kept(&*journal).await;
    a_deleted_session_is_gone(&*journal).await;
    after_the_close_a_log_has_failed(&*journal).await;
}

/// Returns a log with a small ring on a session of a journal.
///
/// # Panics
/// If the session can't be opened.
pub async fn log(journal: &dyn Journal, session: &str) -> Arc<SessionLog> {
    let id = SessionId::parse_scoped(session).unwrap();
    let record = journal.open(&id).await.unwrap();
    let mut options = LogOptions::default();
    options.ring = 8;
    SessionLog::with_record(id, Arc::new(FakeClock::default()), options, record)
}

/// Returns a log whose record fails, as a full disk does, at the event after so many.
///
/// # Panics
/// Never: a new session can be opened.
pub async fn full_after(events: u64) -> Arc<SessionLog> {
    log(&MemoryJournal::with_capacity(events), "s").await
}

/// Returns the root's sink in a run.
pub fn root(log: &Arc<SessionLog>, run: &str) -> EventSink {
    let origin = Origin::session(log.session_id().clone(), Some(run.parse().unwrap()));
    EventSink::root(log.clone(), Origin { reply_id: Some(format!("reply-{run}").parse().unwrap()), ..origin })
}

/// Returns the beginning of an invocation.
pub fn start() -> EventKind {
    let input = vec![Arc::new(Message::user("go"))];
    EventKind::agent_start("main", Role::Assistant, input)
}

/// Returns a delta of text.
pub fn text(delta: impl Into<String>) -> EventKind {
    EventKind::TextBlockDelta { block_id: "b".parse().unwrap(), delta: delta.into() }
}

/// Returns the end of an invocation, which is durable.
pub fn end() -> EventKind {
    EventKind::agent_end(Outcome::Success, Rollup::default(), 1)
}

/// Emits a whole run with this number of deltas.
pub fn run(log: &Arc<SessionLog>, id: &str, texts: usize) {
    let root = root(log, id);
    root.emit(start());
    (0..texts).for_each(|n| _ = root.emit(text(format!("{id} {n}"))));
    root.emit(end());
}

fn child(parent: &EventSink, name: &str) -> EventSink {
    let origin = parent.origin();
    let source = EventSource {
        agent_key: format!("agent:{name}:1").parse().unwrap(),
        agent_id: name.into(),
        agent_name: None,
        label: None,
        session_id: format!("sub-{name}").parse().unwrap(),
        parent_session_id: origin.session_id.clone(),
        depth: 1,
        path: format!("{}/{name}", origin.session_id).into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: None,
        stream_id: 0,
    };
    parent.child(source, format!("reply-{name}").parse().unwrap())
}

/// Returns all events of a session, read page by page.
///
/// # Panics
/// If they can't be read.
pub async fn all(journal: &dyn Journal, session: &str) -> Vec<AgentEvent> {
    let id = SessionId::parse_scoped(session).unwrap();
    let mut events: Vec<AgentEvent> = Vec::new();
    loop {
        let from = events.last().map_or(0, |last| last.seq + 1);
        let page = journal.read(&id, from, 100).await.unwrap();
        if page.is_empty() {
            return events;
        }
        events.extend(page);
    }
}

fn seqs(events: &[AgentEvent]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

async fn a_session_begins_with_its_first_event(journal: &dyn Journal) {
    let unknown = journal.read(&"a".parse().unwrap(), 1, 9).await.unwrap_err();
    assert!(matches!(unknown, JournalError::Unknown { .. }), "{unknown}");
    assert!(journal.sessions().await.unwrap().is_empty());
    let log = log(journal, "a").await;
    assert_eq!(journal.session(&"a".parse().unwrap()).await.unwrap(), None);
    run(&log, "1", 20);
    journal.flush().await.unwrap();
    assert_eq!(log.committed(), Some(22));
    let a = journal.session(&"a".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((a.first, a.last, a.runs, a.events(), a.unfinished), (1, 22, 1, 22, None));
    let events = all(journal, "a").await;
    assert_eq!((a.created_at, a.updated_at), (events[0].at, events[21].at));
    assert_eq!(seqs(&events), (1..=22).collect::<Vec<_>>());
    let read = async |from, max| seqs(&journal.read(&"a".parse().unwrap(), from, max).await.unwrap());
    assert_eq!(read(5, 3).await, [5, 6, 7]);
    assert_eq!(read(21, 100).await, [21, 22]);
    assert_eq!((read(23, 100).await, read(u64::MAX, 1).await, read(1, 0).await), (vec![], vec![], vec![]));
}

async fn a_session_goes_on_where_it_stopped(journal: &dyn Journal) {
    let before = log(journal, "b").await;
    let root_before = root(&before, "1");
    root_before.emit(start());
    child(&root_before, "kid").emit(start());
    journal.flush().await.unwrap();
    drop((root_before, before));
    let b = journal.session(&"b".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((b.last, b.runs, b.unfinished), (2, 1, Some("1".parse().unwrap())));
    let after = log(journal, "b").await;
    assert_eq!((after.last_seq(), after.committed()), (2, Some(2)));
    assert_eq!(after.emit(text("the run that was cut")), 3);
    let other = child(&root(&after, "1"), "other");
    assert_eq!(other.emit(start()), 4);
    assert_eq!(other.origin().source.as_ref().unwrap().stream_id, 2);
    root(&after, "1").emit(end());
    let read: Vec<_> = after.subscribe_from(1).take(5).collect().await;
    assert_eq!(read, all(journal, "b").await);
    assert_eq!(read[2].run_id().map(|run| run.as_str()), Some("1"));
    assert_eq!(journal.session(&"b".parse().unwrap()).await.unwrap().unwrap().unfinished, None);
}

async fn one_writes_at_a_time(journal: &dyn Journal) {
    let is_open = async || journal.is_open(&"c".parse().unwrap()).await.unwrap();
    assert!(!is_open().await, "it does not exist yet");
    let first = log(journal, "c").await;
    let cursor = first.subscribe();
    let busy = async || journal.open(&"c".parse().unwrap()).await.err().unwrap();
    assert!(matches!(busy().await, JournalError::Busy { .. }) && busy().await.is_retryable());
    let not_deleted = journal.delete(&"c".parse().unwrap()).await.unwrap_err();
    assert!(matches!(not_deleted, JournalError::Busy { .. }), "{not_deleted}");
    assert!(is_open().await);
    drop(first);
    assert!(matches!(busy().await, JournalError::Busy { .. }), "a cursor holds its log");
    drop(cursor);
    assert!(!is_open().await, "the last that held it is gone");
    log(journal, "c").await.emit(text("x"));
}

async fn readers_see_only_what_is_kept(journal: &dyn Journal) {
    let log = log(journal, "d").await;
    let mut reader = log.attach();
    for id in ["1", "2", "3"] {
        run(&log, id, 2);
        loop {
            let event = reader.next().await.unwrap();
            let is_kept = log.committed() >= Some(event.seq);
            assert!(is_kept || !event.kind.is_durable(), "{event} was shown before it was committed");
            if event.is_run_end() {
                assert_eq!(all(journal, "d").await.last(), Some(&event));
                break;
            }
        }
    }
}

async fn any_reader_has_the_same_events(journal: &dyn Journal) {
    let log = log(journal, "e").await;
    let early = log.subscribe();
    let runs = 0..40;
    runs.for_each(|n| run(&log, &n.to_string(), 20));
    let last = log.last_seq();
    journal.flush().await.unwrap();
    let kept = all(journal, "e").await;
    assert_eq!(kept.len() as u64, last);
    let rest = |from: u64| log.subscribe_from(from).take((last + 1 - from) as usize).collect::<Vec<_>>();
    assert_eq!(early.take(last as usize).collect::<Vec<_>>().await, kept);
    for from in (1..=last).rev().step_by(37).chain([1, last]) {
        assert_eq!(rest(from).await, kept[from as usize - 1..], "from {from}");
    }
    // And then read from near the end.
    let mut tail = log.subscribe_from(last - 20);
    run(&log, "more", 3);
    let read: Vec<_> = tail.by_ref().take(26).collect().await;
    assert_eq!(seqs(&read), (last - 20..=last + 5).collect::<Vec<_>>());
}

async fn many_sessions_at_once(journal: &dyn Journal) {
    let names: Vec<_> = (0..12).map(|n| format!("m/{n}.~:")).collect();
    let logs = join_all(names.iter().map(|name| log(journal, name))).await;
    for n in 0..10 {
        logs.iter().for_each(|log| run(log, &n.to_string(), 3));
    }
    let ends = logs.iter().map(|log| log.subscribe_from(1).take(50).collect::<Vec<_>>());
    for (name, seen) in names.iter().zip(join_all(ends).await) {
        assert_eq!(all(journal, name).await, seen);
        assert!(seen.iter().all(|event| event.session_id().as_str() == name));
    }
    let found = journal.sessions().await.unwrap();
    assert_eq!(found.iter().filter(|session| session.id.as_str().starts_with("m/")).count(), 12);
    assert!(found.is_sorted_by_key(|session| std::cmp::Reverse(session.updated_at)), "the latest first");
}

async fn retention_drops_whole_invocations(journal: &dyn Journal) {
    let id: SessionId = "r".parse().unwrap();
    let log = log(journal, "r").await;
    (0..3).for_each(|n| run(&log, &n.to_string(), 8));
    let background = child(&root(&log, "3"), "task");
    background.emit(start());
    run(&log, "3", 8);
    journal.flush().await.unwrap();
    let now = |ahead: Duration| {
        let at = log.clock().now().as_micros() + ahead.as_micros() as u64;
        Timestamp::from_micros(at)
    };
    let first = async || journal.session(&id).await.unwrap().unwrap().first;
    let keep = async |retention: Retention, ahead: u64| {
        let others = journal.retain(&retention, now(Duration::from_secs(ahead))).await.unwrap();
        (first().await, others > 0)
    };
    assert_eq!(keep(Retention::all(), 1_000_000).await, (1, false));
    assert_eq!(keep(Retention::all().with_max_events(1_000_000), 0).await, (1, false));
    // Of 41 events 25 may stay: the cut at 16 is within the second run.
    assert_eq!(keep(Retention::all().with_max_events(25), 0).await.0, 11);
    let again = Retention::all().with_max_events(25);
    assert_eq!(keep(again, 0).await, (11, false), "once");
    let dropped = log.subscribe_from(1).next().await.unwrap();
    assert!(matches!(dropped.kind, EventKind::Gap { from_seq: 1, to_seq: 10, missed: 10, .. }), "{dropped}");
    // All are older than a day, but the task is still running.
    let day = Retention::all().with_max_age(Duration::from_secs(86_400));
    assert_eq!(keep(day, 3_600).await, (11, false));
    assert_eq!(keep(day, 90_000).await.0, 31);
    assert_eq!(all(journal, "r").await[0].seq, 31);
    background.emit(end());
    journal.flush().await.unwrap();
    assert_eq!(keep(day, 90_000).await, (43, true));
    let r = journal.session(&id).await.unwrap().unwrap();
    assert_eq!((r.events(), r.last, r.runs), (0, 42, 4));
    let gone = log.subscribe_from(1).next().await.unwrap();
    assert!(matches!(gone.kind, EventKind::Gap { from_seq: 1, to_seq: 34, missed: 34, .. }), "{gone}");
    assert_eq!(log.emit(text("on")), 43);
}

async fn runs_are_found_by_their_ids(journal: &dyn Journal) {
    let log = log(journal, "runs").await;
    run(&log, "found-1", 2);
    run(&log, "found-2", 0);
    journal.flush().await.unwrap();
    let place = |first| Some(RunPlace { session: "runs".parse().unwrap(), first });
    assert_eq!(journal.run(&"found-1".parse().unwrap()).await.unwrap(), place(1));
    assert_eq!(journal.run(&"found-2".parse().unwrap()).await.unwrap(), place(5));
    assert_eq!(journal.run(&"found-3".parse().unwrap()).await.unwrap(), None);
    drop(log);
    assert!(journal.delete(&"runs".parse().unwrap()).await.unwrap());
    assert_eq!(journal.run(&"found-1".parse().unwrap()).await.unwrap(), None);
}

async fn a_key_is_claimed_once(journal: &dyn Journal) {
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
    let log = log(journal, "claims").await;
    run(&log, "claim-1", 1);
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

async fn the_latest_checkpoint_is_kept(journal: &dyn Journal) {
    let id = "checkpoints".parse().unwrap();
    let at = |seq: u64| Checkpoint { seq, state: format!("as of {seq}") };
    journal.store_checkpoint(&id, at(0)).await.unwrap();
    assert_eq!(journal.checkpoint(&id).await.unwrap(), None, "there is no such session");
    let log = log(journal, "checkpoints").await;
    run(&log, "checked-1", 2);
    run(&log, "checked-2", 2);
    journal.flush().await.unwrap();
    for (seq, expected) in [(4, Some(at(4))), (8, Some(at(8))), (9, Some(at(8)))] {
        journal.store_checkpoint(&id, at(seq)).await.unwrap();
        assert_eq!(journal.checkpoint(&id).await.unwrap(), expected, "{seq}");
    }
    drop(log);
    assert!(journal.delete(&id).await.unwrap());
    assert_eq!(journal.checkpoint(&id).await.unwrap(), None);
}

async fn a_deleted_session_is_gone(journal: &dyn Journal) {
    let id: SessionId = "x".parse().unwrap();
    run(&log(journal, "x").await, "1", 1);
    assert!(journal.delete(&id).await.unwrap());
    assert!(!journal.delete(&id).await.unwrap());
    assert_eq!(journal.session(&id).await.unwrap(), None);
    let log = log(journal, "x").await;
    assert_eq!(log.last_seq(), 0, "a new one of the same name");
    run(&log, "1", 1);
    journal.flush().await.unwrap();
    assert_eq!(all(journal, "x").await.len(), 3);
}

async fn after_the_close_a_log_has_failed(journal: &dyn Journal) {
    let log = log(journal, "z").await;
    let mut reader = log.attach();
    run(&log, "1", 1);
    journal.close().await.unwrap();
    assert_eq!(log.failure(), None);
    run(&log, "2", 1);
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
    assert_eq!(all(journal, "z").await.len(), 3, "what was kept can be read");
    assert!(journal.open(&"new".parse().unwrap()).await.is_err());
}
