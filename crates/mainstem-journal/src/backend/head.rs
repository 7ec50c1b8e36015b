//! The state of a session that its writer keeps beside the events.

use mainstem_event::{AgentEvent, EventKind, Position, Timestamp};

/// What a database has of a session besides its events. Its writer applies each event that it
/// appends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// The position after the last event.
    pub position: Position,
    /// How many runs have begun.
    pub runs: u64,
    /// The time of the first event.
    pub created_at: Timestamp,
    /// When the last run began; the time of the first event if none has.
    pub begun_at: Timestamp,
}

impl Head {
    /// Advances by the next event.
    pub fn apply(&mut self, event: &AgentEvent) {
        if self.position.last == 0 {
            (self.created_at, self.begun_at) = (event.at, event.at);
        }
        self.position.apply(event);
        if begins_run(event) {
            self.runs += 1;
            self.begun_at = event.at;
        }
    }
}

/// Returns `true` if the event is the first of a run, so that
/// [`Journal::run`](crate::Journal::run) finds the run there.
pub fn begins_run(event: &AgentEvent) -> bool {
    let starts = event.is_root() && matches!(event.kind, EventKind::AgentStart { .. });
    starts || event.is_queued_run_cancel()
}
