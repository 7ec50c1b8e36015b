//! Which runs a session had, and how each ended.

use std::sync::Arc;

use mainstem_event::{Outcome, Rollup, Timestamp};
use mainstem_message::{Failure, Message, RunId};
use serde::{Deserialize, Serialize};

/// A run of a session, of this process or an earlier one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunRecord {
    /// The run.
    pub id: RunId,
    /// None of its events is before this one.
    pub first: u64,
    /// When it began.
    pub began_at: Timestamp,
    /// How it ended; `None` while it goes on.
    pub end: Option<RunEnd>,
}

/// How a run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunEnd {
    /// How.
    pub outcome: Outcome,
    /// What went wrong.
    pub error: Option<Failure>,
    /// What the agent answered.
    pub answer: Option<Arc<Message>>,
    /// What it cost.
    pub usage: Rollup,
}

impl RunRecord {
    /// One that begins.
    pub(crate) fn new(id: RunId, first: u64, began_at: Timestamp) -> Self {
        Self { id, first, began_at, end: None }
    }
}

impl RunEnd {
    /// All of it.
    pub fn new(
        outcome: Outcome,
        error: Option<Failure>,
        answer: Option<Arc<Message>>,
        usage: Rollup,
    ) -> Self {
        Self { outcome, error, answer, usage }
    }

    /// That of a run that nobody polls any more.
    pub(crate) fn dropped() -> Self {
        let why = Failure::new("dropped", "the stream was dropped before the agent had ended");
        Self::new(Outcome::Cancelled, Some(why), None, Rollup::default())
    }
}
