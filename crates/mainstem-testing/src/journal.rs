//! The contract of `Journal`, and the logs and events with which it is tested.
#![expect(clippy::unwrap_used, reason = "a suite of tests")]

mod contract;

use std::sync::Arc;

use mainstem_event::{AgentEvent, EventKind, EventSink, LogOptions, Origin, Outcome, Rollup, SessionLog};
use mainstem_journal::{Journal, MemoryJournal};
use mainstem_message::{Message, Role, SessionId};

pub use self::contract::{
    check, data::check_tenants as check_data, jobs::check as check_jobs, pages::check as check_pages,
};
use crate::FakeClock;

/// Returns a log with a small ring on a session of a journal.
///
/// # Panics
/// If the session can't be opened.
pub async fn open_log(journal: &dyn Journal, session: &str) -> Arc<SessionLog> {
    let id = SessionId::parse_scoped(session).unwrap();
    let record = journal.open(&id).await.unwrap();
    let mut options = LogOptions::default();
    options.ring = 8;
    SessionLog::with_record(id, Arc::new(FakeClock::default()), options, record)
}

/// Returns a log whose record has room for this number of events, and then fails as on a full disk.
///
/// # Panics
/// Never: a new session can be opened.
pub async fn log_on_full_disk(events: u64) -> Arc<SessionLog> {
    open_log(&MemoryJournal::failing_after(events), "s").await
}

/// Returns the root's sink in a run.
pub fn root_sink(log: &Arc<SessionLog>, run: &str) -> EventSink {
    let origin = Origin::session(log.session_id().clone(), Some(run.parse().unwrap()));
    EventSink::root(log.clone(), Origin { reply_id: Some(format!("reply-{run}").parse().unwrap()), ..origin })
}

/// Returns the first event of an invocation.
pub fn agent_start() -> EventKind {
    let input = vec![Arc::new(Message::user("go"))];
    EventKind::agent_start("main", Role::Assistant, input)
}

/// Returns a delta of text.
pub fn text_delta(delta: impl Into<String>) -> EventKind {
    EventKind::TextBlockDelta { block_id: "b".parse().unwrap(), delta: delta.into() }
}

/// Returns the last event of an invocation, which is durable.
pub fn agent_end() -> EventKind {
    EventKind::agent_end(Outcome::Success, Rollup::default(), 1)
}

/// Emits a whole run with this number of deltas.
pub fn emit_run(log: &Arc<SessionLog>, id: &str, texts: usize) {
    let root = root_sink(log, id);
    root.emit(agent_start());
    (0..texts).for_each(|n| _ = root.emit(text_delta(format!("{id} {n}"))));
    root.emit(agent_end());
}

/// Returns all events of a session, read page by page.
///
/// # Panics
/// If they can't be read.
pub async fn read_all(journal: &dyn Journal, session: &str) -> Vec<AgentEvent> {
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
