//! Jobs: runs at a time, or again and again.

use mainstem_event::Timestamp;
use mainstem_message::{Failure, JobId, RunId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{NewRun, RunState, run::object};

/// A job to add: a run that any process which shares the journal begins when it is due.
///
/// ```
/// use mainstem_api::{NewJob, NewRun};
///
/// let report = NewJob::new(NewRun::new("Report what has changed."))
///     .with_cron("0 9 * * MON-FRI Europe/Berlin")
///     .with_session("reports".parse()?);
/// # Ok::<(), mainstem_message::IdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct NewJob {
    /// Its id. A request that is sent again with the same id is refused (`exists`). Default: a new
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<JobId>,
    /// The session of its runs. Default: each run has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// What is run. It waits for the end of the session's active run.
    #[serde(deserialize_with = "object")]
    pub run: NewRun,
    /// When it begins, in UTC (`2026-12-24T18:00:00Z`). Default: as soon as a process has room for
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Timestamp>,
    /// Instead of `run_at`: begin again and again, at the times of a cron expression: minute, hour,
    /// day of the month, month, day of the week, and a time zone (`0 9 * * MON-FRI Europe/Berlin`);
    /// UTC by default. A time that comes while a run of the job is active, or while no process can
    /// begin it, is not made up for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Among the jobs of a tenant that are due, those of a higher priority begin first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i16,
}

fn is_zero(priority: &i16) -> bool {
    *priority == 0
}

impl NewJob {
    /// Creates a job that begins as soon as a process has room for it.
    pub fn new(run: NewRun) -> Self {
        let (id, session_id, run_at, cron) = Default::default();
        Self { id, session_id, run, run_at, cron, priority: 0 }
    }

    /// Sets the session of its runs.
    #[must_use]
    pub fn with_session(mut self, session: SessionId) -> Self {
        self.session_id = Some(session);
        self
    }

    /// Sets when it begins.
    #[must_use]
    pub fn with_run_at(mut self, at: Timestamp) -> Self {
        self.run_at = Some(at);
        self
    }

    /// Makes it begin again and again.
    #[must_use]
    pub fn with_cron(mut self, cron: impl Into<String>) -> Self {
        self.cron = Some(cron.into());
        self
    }

    /// Sets the priority.
    #[must_use]
    pub fn with_priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }
}

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by sessions in another crate")]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// The session of its runs, unless each has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// What is run.
    pub run: NewRun,
    /// When it begins again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Its priority.
    pub priority: i16,
    /// Its state.
    pub status: JobState,
    /// When its next run begins; once it is over, when its last run was to begin.
    pub due_at: Timestamp,
    /// How many of its runs have ended.
    pub runs: u64,
    /// Its run that has begun and has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The last of its runs that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<JobRunView>,
    /// Why its next run could not begin yet, although it was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postponed: Option<String>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum JobState {
    /// It is not due yet, or no process has had room for it.
    Waiting,
    /// A process runs it.
    Active,
    /// It is cancelled when its run has ended.
    Cancelling,
    /// Its only run has ended.
    Ended,
    /// It was cancelled.
    Cancelled,
}

impl JobState {
    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Active => "active",
            Self::Cancelling => "cancelling",
            Self::Ended => "ended",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A run of a job that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by sessions in another crate")]
pub struct JobRunView {
    /// Its session.
    pub session_id: SessionId,
    /// The run, unless it could not begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// How it ended.
    pub status: RunState,
    /// Why it failed, or could not begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// The query of [`Endpoint::ListJobs`](crate::Endpoint::ListJobs).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct JobQuery {
    /// Also those that are over, for a week after their end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// The maximum number of jobs, at most 1000. Default 100.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The [`next`](crate::Page::next) of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}
