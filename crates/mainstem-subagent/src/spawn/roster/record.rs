//! What events tell of one child. Pure.

use std::sync::Arc;

use mainstem_event::{EventSource, Timestamp};
use mainstem_message::Message;
use serde::{Deserialize, Serialize};

/// A child's identity, conversation and latest activity.
///
/// A running child and one that is read from its session's events change by the same functions, so
/// that a restored child is what it would be had the process gone on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChildRecord {
    /// Of its latest turn; whether that was a background task is left out.
    pub(crate) source: EventSource,
    pub(crate) history: Vec<Arc<Message>>,
    pub(crate) last_activity: Timestamp,
    /// Whether its latest turn was cut off when its process ended, and its parent has not gone on
    /// since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_lost: bool,
    /// How many of its latest turns were cut off so.
    #[serde(default)]
    pub(crate) losses: u32,
}

impl ChildRecord {
    /// Creates the record of a child whose first turn starts.
    pub(crate) fn new(source: EventSource, now: Timestamp) -> Self {
        let source = EventSource { task_id: None, ..source };
        Self { source, history: Vec::new(), last_activity: now, is_lost: false, losses: 0 }
    }

    /// A further turn starts.
    pub(crate) fn start(&mut self, source: EventSource, now: Timestamp) {
        (self.source, self.last_activity) = (EventSource { task_id: None, ..source }, now);
        self.is_lost = false;
    }

    /// A turn ends, with what was said in it.
    pub(crate) fn end(&mut self, said: &[Arc<Message>], now: Timestamp) {
        self.history.extend_from_slice(said);
        self.last_activity = now;
    }

    /// The turn that ends was cut off with its process, or was not.
    pub(crate) fn set_lost(&mut self, is_lost: bool) {
        self.is_lost = is_lost;
        self.losses = if is_lost { self.losses + 1 } else { 0 };
    }

    /// A checkpoint replaces the conversation.
    pub(crate) fn replace(&mut self, history: &[Arc<Message>]) {
        self.history = history.to_vec();
    }

    /// Returns the label that the child was spawned with.
    pub(crate) fn label(&self) -> Option<&str> {
        self.source.label.as_deref()
    }
}
