//! Looking on, and stopping, from elsewhere.

use std::{
    fmt,
    future::{Future, pending, ready},
    pin::pin,
    sync::Arc,
};

use futures_util::{
    StreamExt,
    future::{Either, select},
};
use mainstem_event::{
    AgentEvent, CancelReason, Cursor, Diagnostics, EventStreamExt, FleetState, SendMode, Timestamp,
    view::ReplyError,
};
use mainstem_message::{AgentKey, ConfirmId, Message, RunId, ToolCallId};
use mainstem_react::{Cancellation, RunOutcome};
use mainstem_subagent::{AnswerError, Decision, SpawnError};
use mainstem_task::{TaskError, TaskRecord};
use mainstem_tool::ToolOutput;
use tokio::sync::watch;

use crate::{RunOptions, RunStatus, Session, reading::Reading};

/// A handle on a run. Cheap to clone; it does not keep the run alive and never holds it up.
///
/// ```
/// use std::sync::Arc;
///
/// use mainstem_model::{ScriptedModel, scripted::Turn};
/// use mainstem_react::Agent;
/// use mainstem_session::{RunAgents, Session};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new().agent("main", [Turn::new().text("Hello.")]);
/// let agents = RunAgents::new(Agent::builder("main", model).build()?);
/// let session = Session::builder(Arc::new(agents)).build();
///
/// let run = session.run("Hi")?;
/// let handle = run.handle();
/// handle.cancel(); // asks; the agents end in order as the run is read
/// assert!(run.reply().await.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RunHandle {
    session: Session,
    id: RunId,
    cancel: Cancellation,
    status: watch::Receiver<RunStatus>,
    first: u64,
    requested_at: Timestamp,
    is_stored: bool,
    /// The run whose turn it resumes.
    resumes: Option<RunId>,
    reading: Arc<Reading>,
}

impl RunHandle {
    pub(crate) fn new(
        session: Session,
        id: RunId,
        cancel: Cancellation,
        status: watch::Receiver<RunStatus>,
        options: &RunOptions,
        reading: Arc<Reading>,
    ) -> Self {
        let (first, requested_at) = (session.log().last_seq() + 1, session.log().clock().now());
        let (is_stored, resumes) = (options.is_stored, options.resumes.clone());
        Self { session, id, cancel, status, first, requested_at, is_stored, resumes, reading }
    }

    /// The run whose turn it resumes.
    pub(crate) fn resumes(&self) -> Option<&RunId> {
        self.resumes.as_ref()
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Returns the lowest possible number of the run's events.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns when the run was requested.
    pub fn requested_at(&self) -> Timestamp {
        self.requested_at
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The session's events from now on. An observer that is slow gets a `GAP`; it never slows the
    /// run.
    pub fn subscribe(&self) -> Cursor {
        self.session.log().subscribe()
    }

    /// The session's events from `seq` on: what there is, then live.
    pub fn subscribe_from(&self, seq: u64) -> Cursor {
        self.session.log().subscribe_from(seq)
    }

    /// What the fleet is doing now.
    pub fn fleet(&self) -> FleetState {
        self.session.fleet()
    }

    /// How well the run arrives, so far: of each invocation, how many events it has produced and
    /// how many of them the run handed out, lost in gaps, or still holds; how long its first token
    /// took, and why it did not stream.
    ///
    /// Nothing is counted for this while the run goes on, unless
    /// [`RunOptions::diagnostics`](crate::RunOptions) says so: it is read off the log, whose ring
    /// has the latest events alone. What had to be left out is [`unknown`](Diagnostics::unknown).
    /// Costs as much time as there are events to read.
    pub fn diagnostics(&self) -> Diagnostics {
        self.reading.diagnostics(self.session.log(), &self.id)
    }

    /// Tells an agent something: see [`Session::send`].
    ///
    /// # Errors
    /// The child does not exist, or was closed; the leading agent has no active run.
    pub fn send(&self, key: &AgentKey, message: impl Into<String>, mode: SendMode) -> Result<(), SpawnError> {
        self.session.send(key, message, mode)
    }

    /// Asks a child and everything below it to stop: see [`Session::cancel_agent`].
    pub fn cancel_agent(&self, key: &AgentKey) -> bool {
        self.session.cancel_agent(key)
    }

    /// Answers a question that waits: see [`Session::confirm`].
    ///
    /// # Errors
    /// The request does not exist, or was answered already.
    pub fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), AnswerError> {
        self.session.confirm(id, decision)
    }

    /// Gives the result of an external tool's call: see [`Session::submit_tool_result`].
    ///
    /// # Errors
    /// No such call waits.
    pub fn submit_tool_result(
        &self,
        call: &ToolCallId,
        result: impl Into<ToolOutput>,
    ) -> Result<(), AnswerError> {
        self.session.submit_tool_result(call, result)
    }

    /// The background tasks of the session.
    ///
    /// # Errors
    /// That they can't be read.
    pub async fn tasks(&self) -> Result<Vec<TaskRecord>, TaskError> {
        self.session.tasks().await
    }

    /// Asks every agent of the run to stop: model calls are dropped, tools get a grace, what was
    /// said is kept. Background tasks go on. Returns at once; the run acknowledges by its end, and
    /// must be polled to get there.
    pub fn cancel(&self) {
        self.cancel_because(CancelReason::User { how: None });
    }

    /// Cancels the run for this reason, which its agents and their parents can read. A time limit
    /// ends the run with `timeout`.
    pub fn cancel_because(&self, reason: CancelReason) {
        self.cancel.cancel(reason);
    }

    /// Cancels the run for this reason, and the background tasks of the session; those go on if the
    /// run waits in the queue, because then it has started none of them.
    pub fn cancel_with_tasks(&self, reason: CancelReason) {
        if !matches!(self.status(), RunStatus::Queued) {
            let below = reason.clone().below(&self.session.root_id());
            self.session.task_set().cancel_below(self.session.id(), &below);
        }
        self.cancel_because(reason);
    }

    /// Returns how the run stands now. Reads the state, without waiting and without a runtime.
    pub fn status(&self) -> RunStatus {
        // Looked at first: a run that ends and is dropped meanwhile has ended.
        let is_dropped = self.status.has_changed().is_err();
        match &*self.status.borrow() {
            RunStatus::Queued | RunStatus::Running if is_dropped => RunStatus::Dropped,
            status => status.clone(),
        }
    }

    /// Waits for the run's end and returns how it ended; `None` if the run was dropped before.
    ///
    /// Dropping the future does not affect the run. [`status`](Self::status) returns the state
    /// without waiting.
    pub fn outcome(&self) -> impl Future<Output = Option<RunOutcome>> + Send + 'static {
        let mut status = self.status.clone();
        async move { status.wait_for(RunStatus::is_over).await.ok()?.outcome().cloned() }
    }

    /// Waits until the run has begun, was cancelled in the queue, or was dropped.
    pub async fn begun(&self) {
        let mut status = self.status.clone();
        let _ = status.wait_for(|status| !matches!(status, RunStatus::Queued)).await;
    }

    /// Returns `true` if it was [stored](crate::RunOptions::is_stored) while it was queued, and
    /// this process, which stops, has left it to the next one.
    pub fn is_left(&self) -> bool {
        self.is_stored && self.status().is_over() && !self.session.has_run(&self.id)
    }

    /// Waits until the run was dropped, and what it held if it was
    /// [detached](crate::Run::detach_with): then the session's next run can begin. A run that its
    /// caller polls is dropped by the caller.
    pub async fn released(&self) {
        let mut status = self.status.clone();
        while status.changed().await.is_ok() {}
    }

    /// Waits for the final reply of the first instance of a child (by agent id or by key) that
    /// ends, while others read the run.
    ///
    /// # Errors
    /// The child failed, or the run ended without it.
    pub async fn final_reply_of(&self, agent: impl Into<String>) -> Result<Message, ReplyError> {
        let run = self.id.clone();
        let goes_on = move |event: &AgentEvent| ready(!(event.is_run_end() && event.run_id() == Some(&run)));
        let reply = pin!(self.subscribe_from(self.first).take_while(goes_on).final_reply_of(agent));
        // A run that is dropped before it began says nothing at all; what it did say is read first.
        let outcome = self.outcome();
        let dropped = pin!(async {
            if outcome.await.is_some() {
                pending().await
            }
        });
        match select(reply, dropped).await {
            Either::Left((reply, _)) => reply,
            Either::Right(((), _)) => Err(ReplyError::Unfinished),
        }
    }
}

impl fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle").field("id", &self.id).finish_non_exhaustive()
    }
}
