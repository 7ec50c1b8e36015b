//! What may be dropped: pure.

use std::{collections::HashSet, time::Duration};

use mainstem_event::{AgentEvent, EventKind, Timestamp};

/// How much of each session is retained. By default all of it.
///
/// Whole invocations go, the oldest first, and nothing while an invocation is open that began
/// before: what is left folds to conversations and keeps the laws. So a little more may stay than
/// was asked for, and a session all of which lies in one run stays as it is. A session whose events
/// are all dropped keeps its name and its numbers. A session that is resumed has only the retained
/// events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Events older than this go.
    pub max_age: Option<Duration>,
    /// Of each session no more than this stay.
    pub max_events: Option<u64>,
}

impl Retention {
    /// Retains everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// Events older than this go.
    #[must_use]
    pub fn with_max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// Of each session no more than this stay.
    #[must_use]
    pub fn with_max_events(mut self, events: u64) -> Self {
        self.max_events = Some(events);
        self
    }
}

/// Looks through a session's events, in order, for the last place where it may be cut.
#[derive(Debug)]
pub(crate) struct Cut {
    /// Up to this number events are too many.
    many: u64,
    /// Before this time events are too old.
    old: Timestamp,
    /// The streams of the invocations that are open.
    open: HashSet<u64>,
    through: u64,
}

impl Cut {
    pub(crate) fn new(retention: &Retention, last: u64, now: Timestamp) -> Self {
        let micros = |age: Duration| now.as_micros().saturating_sub(age.as_micros() as u64);
        Self {
            many: retention.max_events.map_or(0, |events| last.saturating_sub(events)),
            old: Timestamp::from_micros(retention.max_age.map_or(0, micros)),
            open: HashSet::new(),
            through: 0,
        }
    }

    /// Looks at the next event; `false` if nothing from here on may go.
    pub(crate) fn apply(&mut self, event: &AgentEvent) -> bool {
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

    /// Up to which number all may go; 0 if nothing may.
    pub(crate) fn through(&self) -> u64 {
        self.through
    }
}
