//! Sessions, wherever they are: in this process, in the records of this machine, or on a server.

use std::{pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_core::Stream;
use mainstem_event::{AgentEvent, CancelReason, ChildSummary, Decision, FleetState, SendMode};
use mainstem_message::{AgentKey, ConfirmId, JobId, RunId, SessionId, StoredData, TaskId, ToolCallId};
use mainstem_task::TaskRecord;

use crate::{
    Error, EventQuery, JobQuery, JobView, NewJob, NewRun, NewToolResult, Page, RunView, SessionQuery,
    SessionView, TaskQuery,
};

/// Events of a session, in order. After an error there are no more. Dropping a wait for the next
/// event loses nothing.
pub type Events = Pin<Box<dyn Stream<Item = Result<AgentEvent, Error>> + Send>>;

/// A place that has sessions, background tasks and jobs.
#[async_trait]
pub trait Host: Send + Sync {
    /// Returns a page of the sessions; the one whose run began last comes first.
    ///
    /// # Errors
    /// The query is not valid, or they can't be read.
    async fn sessions(&self, query: &SessionQuery) -> Result<Page<SessionView>, Error>;

    /// Returns a session, which may be a new one: only a run creates it.
    fn session(&self, id: &SessionId) -> Arc<dyn AnySession>;

    /// Deletes a session permanently.
    ///
    /// # Errors
    /// The session does not exist, or is in use.
    async fn delete_session(&self, id: &SessionId) -> Result<(), Error>;

    /// Finishes: a file that it has written is complete, without others beside it. A server needs
    /// none.
    ///
    /// # Errors
    /// What was written last may be lost.
    async fn close(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns background tasks, the oldest first.
    ///
    /// # Errors
    /// If they can't be read.
    async fn tasks(&self, query: &TaskQuery) -> Result<Vec<TaskRecord>, Error>;

    /// Returns a background task.
    ///
    /// # Errors
    /// The task does not exist, or can't be read.
    async fn task(&self, id: &TaskId) -> Result<TaskRecord, Error>;

    /// Waits for a background task, at most this long, and returns it; it may not be over.
    ///
    /// # Errors
    /// The task does not exist, or can't be read.
    async fn wait_for_task(&self, id: &TaskId, timeout: Duration) -> Result<TaskRecord, Error>;

    /// Asks a background task to stop, waits some seconds for that, and returns it; it may not be
    /// over.
    ///
    /// # Errors
    /// The task does not exist, or can't be read or written.
    async fn cancel_task(&self, id: &TaskId) -> Result<TaskRecord, Error>;

    /// Removes the record of a background task that is over, with its result.
    ///
    /// # Errors
    /// The task does not exist or is not over ([`TaskRunning`](crate::Code::TaskRunning)), or the
    /// record can't be removed.
    async fn remove_task(&self, id: &TaskId) -> Result<(), Error>;

    /// Returns a page of jobs; the one that is due first comes first.
    ///
    /// # Errors
    /// The query is not valid, the place has no journal ([`NoJobs`](crate::Code::NoJobs)), or they
    /// can't be read.
    async fn jobs(&self, query: &JobQuery) -> Result<Page<JobView>, Error>;

    /// Returns a job.
    ///
    /// # Errors
    /// The job does not exist, or can't be read.
    async fn job(&self, id: &JobId) -> Result<JobView, Error>;

    /// Adds a job.
    ///
    /// # Errors
    /// It is not valid, there is one of its id ([`Exists`](crate::Code::Exists)), or it can't be
    /// stored.
    async fn add_job(&self, job: NewJob) -> Result<JobView, Error>;

    /// Cancels a job: it begins no further run, and its run is asked to stop if one is active.
    ///
    /// # Errors
    /// It does not exist, is over ([`JobOver`](crate::Code::JobOver)), or can't be changed.
    async fn cancel_job(&self, id: &JobId) -> Result<JobView, Error>;
}

/// A session. The functions mean the same wherever the session is; a place that only has its record
/// refuses what needs a running session with [`NotSteerable`](crate::Code::NotSteerable).
#[async_trait]
pub trait AnySession: Send + Sync {
    /// Returns its id.
    fn id(&self) -> &SessionId;

    /// Returns what is known of it.
    ///
    /// # Errors
    /// The session does not exist, or can't be read.
    async fn view(&self) -> Result<SessionView, Error>;

    /// Returns its runs, the oldest first.
    ///
    /// # Errors
    /// The session does not exist, or can't be read.
    async fn runs(&self) -> Result<Vec<RunView>, Error>;

    /// Begins a run, or resumes the last turn.
    ///
    /// # Errors
    /// Another run is active, there is nothing to resume, or the options are invalid.
    async fn run(&self, run: NewRun) -> Result<Begun, Error>;

    /// Streams its events: the stored ones, then, if the query [follows](EventQuery::is_following),
    /// live. A `GAP` replaces events that retention has deleted.
    fn events(&self, query: EventQuery) -> Events;

    /// Returns the state of every agent.
    ///
    /// # Errors
    /// The session does not exist, or can't be read.
    async fn fleet(&self) -> Result<FleetState, Error>;

    /// Returns the state that every agent had after this event.
    ///
    /// # Errors
    /// The session or the event does not exist, or can't be read.
    async fn fleet_at(&self, seq: u64) -> Result<FleetState, Error>;

    /// Returns the data to which a message of the session refers.
    ///
    /// # Errors
    /// The session has no such data, or it can't be read.
    async fn data(&self, data: &StoredData) -> Result<Bytes, Error>;

    /// Returns the children, in the order of their start.
    ///
    /// # Errors
    /// The session does not exist, or can't be read.
    async fn children(&self) -> Result<Vec<ChildSummary>, Error>;

    /// Returns its background tasks, the oldest first.
    ///
    /// # Errors
    /// If they can't be read.
    async fn tasks(&self) -> Result<Vec<TaskRecord>, Error>;

    /// Sends a message to a child, or into the running turn of the leading agent, whose key is
    /// [`ROOT`](mainstem_event::fold::ROOT).
    ///
    /// # Errors
    /// The child does not exist, or was closed; the leading agent has no active run
    /// ([`OnlyWithinTurn`](crate::Code::OnlyWithinTurn)).
    async fn send(&self, agent: &AgentKey, message: &str, mode: SendMode) -> Result<(), Error>;

    /// Answers a request for approval.
    ///
    /// # Errors
    /// The request does not exist, or was answered already ([`NotAsked`](crate::Code::NotAsked)).
    async fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), Error>;

    /// Gives the result of an external tool's call.
    ///
    /// # Errors
    /// The call does not wait for a result ([`NotAsked`](crate::Code::NotAsked)).
    async fn submit(&self, call: &ToolCallId, result: &NewToolResult) -> Result<(), Error>;

    /// Asks a child and every agent below it to stop; returns whether it was running.
    ///
    /// # Errors
    /// The child does not exist.
    async fn cancel_agent(&self, child: &AgentKey) -> Result<bool, Error>;

    /// Returns the events after this number that this process holds, without waiting; none of a
    /// session on a server.
    fn at_hand(&self, after: u64) -> Vec<AgentEvent> {
        let _ = after;
        Vec::new()
    }

    /// Ends the work that this process does for the session: its background tasks get this long,
    /// then they are stopped. A session on a server goes on.
    async fn release(&self, grace: Duration) {
        let _ = grace;
    }
}

/// A run that has begun.
#[expect(clippy::exhaustive_structs, reason = "built by sessions in other crates")]
pub struct Begun {
    /// The run.
    pub run: Arc<dyn AnyRun>,
    /// Its events, to its end. A run in this process advances only while they are polled, and stops
    /// when they are dropped; one on a server goes on.
    pub events: Events,
}

impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Begun").field("run", self.run.id()).finish_non_exhaustive()
    }
}

/// A run of a session.
#[async_trait]
pub trait AnyRun: Send + Sync {
    /// Returns its id.
    fn id(&self) -> &RunId;

    /// Returns what is known of it; once its events have ended, how it ended.
    ///
    /// # Errors
    /// The server can't be reached.
    async fn view(&self) -> Result<RunView, Error>;

    /// Asks every agent of the run to stop, and its background tasks. Its last event acknowledges
    /// it.
    ///
    /// # Errors
    /// The server can't be reached.
    async fn cancel(&self, reason: CancelReason) -> Result<(), Error>;
}
