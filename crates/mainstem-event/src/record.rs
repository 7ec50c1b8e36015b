//! What a session log can have behind it: a durable record of its events. Without I/O and without a
//! runtime.

use std::{sync::Arc, task::Waker};

use futures_util::future::BoxFuture;
use mainstem_message::RunId;

use crate::{AgentEvent, EventKind, Timestamp};

/// Keeps the events of one session, durably.
///
/// The session log hands every event to its record, in order, under its lock; the record keeps them
/// on threads of its own and says how far it has come. Kinds that [promise
/// durability](EventKind::is_durable), and whatever comes after them, are given to no reader before
/// they are committed. A record that fails has a reason, and stays failed: the log then continues
/// in memory alone, and its run ends with an error.
///
/// Dropping a record persists its events asynchronously; use its journal's `flush` or `close` to
/// wait for them.
pub trait Record: Send + Sync + 'static {
    /// Where the record ended when it was opened: a log goes on from there.
    fn position(&self) -> Position;

    /// Takes the next event. Never waits and never fails: what can't be kept is said by
    /// [`failure`](Self::failure). It must not call the waker from within.
    fn append(&self, event: &AgentEvent);

    /// The number up to which all events are kept; 0 if none is.
    fn committed(&self) -> u64;

    /// Why it keeps nothing more, as a sentence that names the place and the cause.
    fn failure(&self) -> Option<Arc<str>>;

    /// Whom to wake whenever [`committed`](Self::committed) or [`failure`](Self::failure) changes,
    /// other than within [`append`](Self::append). It replaces the one before.
    fn watch(&self, waker: Waker);

    /// Returns a page of the events from `from` to `through`, both of which are committed.
    /// Discarded events are left out; in the place of an event that can't be read there may be a
    /// [gap](AgentEvent::unreadable) that states the reason.
    ///
    /// Dropping the future cancels the read.
    fn read(&self, from: u64, through: u64) -> BoxFuture<'static, Page>;
}

/// Some events of a [`Record`], in order.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The events.
    pub events: Vec<AgentEvent>,
    /// A requested event that is neither here nor after this number no longer exists.
    pub through: u64,
}

/// Where a session's events have come to: what a log needs to know that goes on after them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Position {
    /// The number of the last event; 0 before the first.
    pub last: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// The run whose root has begun and not ended.
    pub run: Option<RunId>,
    /// How many invocations of children have begun.
    pub streams: u64,
}

impl Position {
    /// Moves on to the next event.
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
