//! Which events may be dropped. Pure.

use std::{collections::HashSet, time::Duration};

use mainstem_event::{AgentEvent, EventKind, Timestamp};

/// How much of each session is retained. By default all of it.
///
/// Whole invocations are dropped, the oldest first; an open invocation retains everything from its
/// beginning on. So the rest folds to conversations and keeps the laws, a little more may stay than
/// the limits say, and a session with a single run stays whole. A session whose events are all
/// dropped keeps its name and its numbers. A session that is resumed has only the retained events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Older events are dropped.
    pub max_age: Option<Duration>,
    /// Events of a session beyond this number are dropped.
    pub max_events: Option<u64>,
}

impl Retention {
    /// Creates a retention that drops nothing.
    pub fn all() -> Self {
        Self::default()
    }

    /// Drops events older than this.
    #[must_use]
    pub fn with_max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// Drops the events of a session beyond this number.
    #[must_use]
    pub fn with_max_events(mut self, events: u64) -> Self {
        self.max_events = Some(events);
        self
    }
}

/// Finds the number up to which a session's events may be dropped, from its events in order: never
/// within an invocation. For implementations of [`Journal::retain`](crate::Journal::retain).
#[derive(Debug)]
pub struct Cut {
    /// Events up to this number exceed the limit.
    many: u64,
    /// Events before this time are too old.
    old: Timestamp,
    /// The streams of the invocations that are open.
    open: HashSet<u64>,
    through: u64,
}

impl Cut {
    /// Creates one for a session whose last event has this number.
    pub fn new(retention: &Retention, last: u64, now: Timestamp) -> Self {
        let micros = |age: Duration| now.as_micros().saturating_sub(age.as_micros() as u64);
        Self {
            many: retention.max_events.map_or(0, |events| last.saturating_sub(events)),
            old: Timestamp::from_micros(retention.max_age.map_or(0, micros)),
            open: HashSet::new(),
            through: 0,
        }
    }

    /// Applies the next event; returns `false` if all events from here on stay.
    pub fn apply(&mut self, event: &AgentEvent) -> bool {
        if event.seq > self.many && event.at >= self.old {
            return false;
        }
        let stream = event.source().map_or(0, |source| source.stream_id);
        match event.kind {
            EventKind::AgentStart { .. } => _ = self.open.insert(stream),
            EventKind::AgentEnd { .. } => _ = self.open.remove(&stream),
            _ => {}
        }
        if self.open.is_empty() {
            self.through = event.seq;
        }
        true
    }

    /// Returns the last number up to which events may be dropped; 0 if none may.
    pub fn through(&self) -> u64 {
        self.through
    }
}
