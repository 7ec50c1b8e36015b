//! The durable record behind a session log. Without I/O and without a runtime.

use std::{sync::Arc, task::Waker};

use futures_util::future::BoxFuture;
use mainstem_message::RunId;

use crate::{AgentEvent, EventKind, Timestamp};

/// Records the events of one session durably.
///
/// The session log hands every event to its record, in order, under its lock; the record commits
/// them on threads of its own and reports its progress. [Durable kinds](EventKind::is_durable), and
/// all events after them, are hidden from readers until they are committed. A record that fails has
/// a reason, and stays failed: the log then continues in memory alone, and its run ends with an
/// error.
///
/// Dropping a record persists its events asynchronously; use its journal's `flush` or `close` to
/// wait for them.
pub trait Record: Send + Sync + 'static {
    /// Returns the position at which the record was opened; a log continues from there.
    fn position(&self) -> Position;

    /// Takes the next event. Never waits and never fails: [`failure`](Self::failure) reports
    /// errors. It must not call the waker from within.
    fn append(&self, event: &AgentEvent);

    /// Returns the number up to which all events are committed; 0 if none is.
    fn committed(&self) -> u64;

    /// Returns why it has failed, as a sentence that names the place and the cause.
    fn failure(&self) -> Option<Arc<str>>;

    /// Sets the waker to wake whenever [`committed`](Self::committed) or [`failure`](Self::failure)
    /// changes other than within [`append`](Self::append). It replaces the one before.
    fn watch(&self, waker: Waker);

    /// Returns a page of the events from `from` to `through`, both of which are committed.
    /// Discarded events are left out; a [gap](AgentEvent::unreadable) with the reason may stand for
    /// an event that can't be read.
    ///
    /// Dropping the future cancels the read.
    fn read(&self, from: u64, through: u64) -> BoxFuture<'static, Page>;
}

/// Some events of a [`Record`], in order.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The events.
    pub events: Vec<AgentEvent>,
    /// A requested event up to this number that is not in the page no longer exists.
    pub through: u64,
}

/// The position at the end of a session's events, from which a log continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Position {
    /// The number of the last event; 0 before the first.
    pub last: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// The run whose root has begun and not ended.
    pub run: Option<RunId>,
    /// The number of children's invocations that have begun.
    pub streams: u64,
}

impl Position {
    /// Advances by the next event.
    pub fn apply(&mut self, event: &AgentEvent) {
        (self.last, self.at) = (event.seq, event.at);
        if let Some(source) = event.source() {
            self.streams = self.streams.max(source.stream_id);
            return;
        }
        if matches!(event.kind, EventKind::AgentStart { .. }) {
            self.run.clone_from(&event.origin.run_id);
        } else if matches!(event.kind, EventKind::AgentEnd { .. }) {
            self.run = None;
        }
    }
}

#[cfg(test)]
mod tests;
