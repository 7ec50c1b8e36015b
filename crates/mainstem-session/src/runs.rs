//! Which runs a session had, and how each ended.

use std::{sync::Arc, time::Duration};

use mainstem_event::{Outcome, Rollup, RunSettings, Timestamp};
use mainstem_message::{Failure, Message, RunId};
use mainstem_policy::Spend;
use mainstem_react::RunOutcome;
use serde::{Deserialize, Serialize};

/// How a run of this process stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RunStatus {
    /// Another run of the session is active; this one begins after it.
    Queued,
    /// It is the session's active run.
    Running,
    /// It has ended.
    Ended(Box<RunOutcome>),
    /// It was dropped before it had ended.
    Dropped,
}

impl RunStatus {
    /// Returns `true` if the run has ended or was dropped.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::Dropped)
    }

    /// How it ended; `None` if it has not, or was dropped.
    pub fn outcome(&self) -> Option<&RunOutcome> {
        match self {
            Self::Ended(outcome) => Some(outcome),
            Self::Queued | Self::Running | Self::Dropped => None,
        }
    }

    /// A queued run is active from now on; returns whether it was queued.
    pub(crate) fn begin(&mut self) -> bool {
        let was_queued = matches!(self, Self::Queued);
        if was_queued {
            *self = Self::Running;
        }
        was_queued
    }
}

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
    /// What its caller has set.
    pub settings: Arc<RunSettings>,
    /// How it ended; `None` while it goes on.
    pub end: Option<RunEnd>,
    /// Whether it was cancelled while it was queued: nothing was said in it.
    #[serde(default)]
    pub never_began: bool,
    /// The event with its end, or one after it; 0 while it goes on, and for a run that an earlier
    /// process has recorded.
    #[serde(skip)]
    pub(crate) end_seq: u64,
    /// What it has spent of a budget, for a run that goes on where it stopped.
    #[serde(skip)]
    pub(crate) spent: Spend,
    /// For how long it ran.
    #[serde(skip)]
    pub(crate) ran: Duration,
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
    pub(crate) fn new(id: RunId, first: u64, began_at: Timestamp, settings: Arc<RunSettings>) -> Self {
        let (spent, ran) = Default::default();
        Self { id, first, began_at, settings, end: None, never_began: false, end_seq: 0, spent, ran }
    }

    /// Returns the record of a run that was cancelled while it was queued.
    pub(crate) fn cancelled(id: RunId, first: u64, at: Timestamp, why: Failure) -> Self {
        let end = RunEnd::new(Outcome::Cancelled, Some(why), None, Rollup::default());
        Self { end: Some(end), never_began: true, end_seq: first, ..Self::new(id, first, at, Arc::default()) }
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

    /// The end of a run that was dropped.
    pub(crate) fn dropped() -> Self {
        let why = Failure::new("dropped", "the stream was dropped before the agent had ended");
        Self::new(Outcome::Cancelled, Some(why), None, Rollup::default())
    }
}
