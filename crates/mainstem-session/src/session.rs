//! A conversation: one log, one history, one run at a time.

mod builder;
mod lookup;
mod running;

use std::{
    fmt,
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use mainstem_event::{
    CancelReason, Cursor, EventKind, FleetState, Ids, Outcome, SendMode, SessionLog, Timestamp, fold::ROOT,
};
use mainstem_message::{AgentKey, ConfirmId, Message, Role, RunId, SessionId, ToolCallId};
use mainstem_policy::{PlanMode, Prices};
use mainstem_react::DataStore;
use mainstem_subagent::{AnswerError, ChildSummary, Decision, Fleet, SpawnError};
use mainstem_task::{TaskError, TaskFilter, TaskRecord, TaskSet};
use mainstem_tool::ToolOutput;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

pub use self::{builder::SessionBuilder, lookup::FoundRun};
use crate::{
    AgentSource, InUse, NothingToResume, Run, RunActive, RunAgents, RunHandle, RunOptions, RunRecord,
    RunRequest, checkpoints::Checkpoints, data::SessionData, deferred::Deferred, moments::Moments, settings,
    turn::Turns, wake::Wake,
};

/// What a model reads whose answer was cut off.
const GO_ON: &str = "<system-reminder>\nYour answer was cut off. Go on where it stopped.\n</system-reminder>";

/// A conversation with an agent. Cheap to clone; clones are the same session.
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
/// let model = ScriptedModel::new()
///     .agent("main", [Turn::new().text("Hello."), Turn::new().text("Hello again.")]);
/// let agents = RunAgents::new(Agent::builder("main", model).build()?);
/// let session = Session::builder(Arc::new(agents)).build();
///
/// assert_eq!(session.run("Hi")?.reply().await?.text(), "Hello.");
/// // The second run knows the first.
/// assert_eq!(session.run("Hi")?.reply().await?.text(), "Hello again.");
/// assert_eq!(session.history().len(), 4);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Session(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    source: Arc<dyn AgentSource>,
    /// Of the latest run; a message from outside to a child is sent in their name.
    agents: Mutex<Option<RunAgents>>,
    log: Arc<SessionLog>,
    begun: Begun,
    buffer: usize,
    fleet: Arc<Fleet>,
    tasks: TaskSet,
    prices: Arc<Prices>,
    attributes: Map<String, Value>,
    ids: Arc<dyn Ids>,
    history: Mutex<Vec<Arc<Message>>>,
    runs: Mutex<Vec<RunRecord>>,
    checkpoints: Option<Checkpoints>,
    /// Its record, if the first run opens it.
    deferred: Option<Arc<Deferred>>,
    turns: Turns,
    /// The cursor exists from the first request on: a reader costs.
    watch: Mutex<(Option<Cursor>, FleetState)>,
    moments: Moments,
    wake: Wake,
    /// Whether opening it has ended a run that was cut off; `take_cut_run` clears it.
    is_cut: AtomicBool,
    /// Set once what is stored beside its record is restored.
    restored: OnceCell<()>,
}

/// Where the events of a session begin.
pub(crate) struct Begun {
    pub(crate) at: Timestamp,
    /// The first event that is stored.
    pub(crate) first: u64,
}

impl Session {
    /// Begins to build a session, whose runs find their agents in `source`.
    pub fn builder(source: Arc<dyn AgentSource>) -> SessionBuilder {
        SessionBuilder::new(source)
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        self.0.log.session_id()
    }

    /// Returns `true` if [`take_cut_run`](Self::take_cut_run) would.
    pub fn has_cut_run(&self) -> bool {
        self.0.is_cut.load(Ordering::Acquire)
    }

    /// Returns `true`, once, if opening the session has ended a run that was cut off when its
    /// process ended, or if such a run was ended before and [its turn is not resumed
    /// yet](mainstem_journal::SessionSummary::cut); [`resume`](Self::resume) resumes it.
    pub fn take_cut_run(&self) -> bool {
        self.0.is_cut.swap(false, Ordering::AcqRel)
    }

    /// Runs this once since the session was opened, to restore what is stored beside its record.
    /// Concurrent calls wait for the first one. If that is dropped, the next one runs its own.
    pub async fn restore<F: Future<Output = ()>>(&self, restore: impl FnOnce() -> F) {
        self.0.restored.get_or_init(restore).await;
    }

    /// Its events: to observe it, or to read back.
    pub fn log(&self) -> &Arc<SessionLog> {
        &self.0.log
    }

    /// Returns when the session began.
    pub fn created_at(&self) -> Timestamp {
        self.0.begun.at
    }

    /// Returns the number of the first event that can be read: the first that was stored when the
    /// session was opened, or the first that a session in memory still has.
    pub fn first_seq(&self) -> u64 {
        if self.is_recorded() {
            return self.0.begun.first;
        }
        let first = self.0.log.recent_from(1).try_next();
        match first.as_ref().map(|first| &first.kind) {
            Some(EventKind::Gap { to_seq, .. }) => to_seq + 1,
            _ => 1,
        }
    }

    /// Returns `true` if a journal records the session.
    pub fn is_recorded(&self) -> bool {
        self.0.checkpoints.is_some()
    }

    /// Returns the store of the data of its messages; `None` if no journal records the session.
    pub(crate) fn data_store(&self) -> Option<Arc<dyn DataStore>> {
        let journal = self.0.checkpoints.as_ref()?.journal().clone();
        Some(Arc::new(SessionData::new(journal, self.id().clone())))
    }

    /// Returns `true` if the session can't be recorded any longer: its runs end with an error, and
    /// it has to be opened again.
    pub fn has_failed(&self) -> bool {
        self.0.log.failure().is_some()
    }

    /// Returns what the session is in use for, besides the caller's own clone of it.
    pub fn in_use(&self) -> Option<InUse> {
        if self.active().is_some() || !self.queued().is_empty() {
            return Some(InUse::Run);
        }
        if !self.0.tasks.live_below(self.id()).is_empty() {
            return Some(InUse::Tasks);
        }
        (Arc::strong_count(&self.0) > 1).then_some(InUse::Held)
    }

    /// Returns `true` if a run is queued or active, or background tasks are running.
    pub fn is_active(&self) -> bool {
        self.active().is_some() || !self.queued().is_empty() || !self.0.tasks.live_below(self.id()).is_empty()
    }

    /// The session's events from `seq` on: what there is, then live, also between runs. An observer
    /// that is slow gets a `GAP`; it never slows a run.
    pub fn subscribe_from(&self, seq: u64) -> Cursor {
        self.0.log.subscribe_from(seq)
    }

    /// The background tasks of all its agents, oldest first.
    ///
    /// # Errors
    /// That they can't be read.
    pub async fn tasks(&self) -> Result<Vec<TaskRecord>, TaskError> {
        self.0.tasks.list(&TaskFilter::of_root(self.id().clone())).await
    }

    /// Tells an agent something: `Queue` begins a new turn after the present one, `Steer` enters
    /// the present turn before the agent's next model call, `Interrupt` at once. Returns at once; a
    /// turn that it begins is a background task of the root, which is told of its end.
    ///
    /// The leading agent has the key [`ROOT`](mainstem_event::fold::ROOT), and its turns are runs:
    /// it takes messages while a run is active, in the other two modes.
    ///
    /// # Errors
    /// The child does not exist, or was closed; the leading agent has no active run.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn send(&self, key: &AgentKey, message: impl Into<String>, mode: SendMode) -> Result<(), SpawnError> {
        if key.as_str() == ROOT {
            return self.steer(message.into(), mode);
        }
        // Before the first run there are no children.
        let unknown = || SpawnError::UnknownChild { name: key.to_string(), known: Vec::new() };
        let agents = lock(&self.0.agents).clone().ok_or_else(unknown)?;
        let cx = self.context_of_child(&agents, key);
        self.0.fleet.tell(cx, key, message.into(), mode)
    }

    fn steer(&self, message: String, mode: SendMode) -> Result<(), SpawnError> {
        if mode == SendMode::Queue || self.active().is_none() {
            return Err(SpawnError::OnlyWithinTurn);
        }
        self.0.fleet.tell_root(self.log(), message, mode);
        Ok(())
    }

    /// Asks a child and everything below it to stop, its background tasks too; siblings go on.
    /// Returns at once, whether there was something to stop; its `AGENT_END` is the
    /// acknowledgement.
    pub fn cancel_agent(&self, key: &AgentKey) -> bool {
        self.0.fleet.cancel(key, &CancelReason::User { how: None }.by())
    }

    /// Answers a question that waits (`REQUIRE_USER_CONFIRM`), whichever agent asked it; siblings
    /// have gone on meanwhile.
    ///
    /// # Errors
    /// The request does not exist, or was answered already.
    pub fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), AnswerError> {
        self.0.fleet.confirm(id, decision)
    }

    /// Gives the result of an external tool's call that waits (`REQUIRE_EXTERNAL_EXECUTION`),
    /// whichever agent made it.
    ///
    /// # Errors
    /// No such call waits.
    pub fn submit_tool_result(
        &self,
        call: &ToolCallId,
        result: impl Into<ToolOutput>,
    ) -> Result<(), AnswerError> {
        self.0.fleet.submit_tool_result(call, result)
    }

    /// Whether the session plans: then only tools that change nothing run, for all of its agents.
    pub fn plan_mode(&self) -> PlanMode {
        self.0.fleet.plan_mode()
    }

    /// Begins or ends planning, for all of its agents, those that are running too; tool calls that
    /// have begun go on. A change is recorded as an event, so it holds after a restart.
    pub fn set_plan_mode(&self, mode: PlanMode) {
        self.0.fleet.set_plan_mode(mode, &self.0.log);
    }

    /// The children of the session, in the order of their start.
    pub fn children(&self) -> Vec<ChildSummary> {
        self.0.fleet.children()
    }

    /// Where its background work is done.
    pub fn task_set(&self) -> &TaskSet {
        &self.0.tasks
    }

    /// What was said so far between the caller and the agent.
    pub fn history(&self) -> Vec<Arc<Message>> {
        lock(&self.0.history).clone()
    }

    /// Begins a run: the agent works on the input with the session's history.
    ///
    /// The run is the session's active one from this call until it ends or is dropped; it starts
    /// when it is first polled.
    ///
    /// # Errors
    /// Another run of the session is active; [`queue`](Self::queue) waits for its end.
    pub fn run(&self, request: impl Into<RunRequest>) -> Result<Run, RunActive> {
        let permit = self.0.turns.try_take().map_err(|_| RunActive { run: self.active_id() })?;
        let RunRequest { input, options } = request.into();
        Ok(Run::new(self.clone(), vec![Arc::new(input)], options, Some(permit)))
    }

    /// Begins a run as soon as no other run of the session is active, in the order of the calls.
    /// The run has its place from this call on, and starts when it is polled.
    ///
    /// Until then its status is [`Queued`](crate::RunStatus::Queued), and dropping it gives its
    /// place up. A run that is held and not polled keeps those behind it waiting.
    pub fn queue(&self, request: impl Into<RunRequest>) -> Run {
        let RunRequest { input, options } = request.into();
        Run::new(self.clone(), vec![Arc::new(input)], options, self.0.turns.try_take().ok())
    }

    /// Begins a run that compacts the conversation, however short it is: the model summarizes its
    /// older messages, and a `STATE_CHECKPOINT` has the new conversation. The run has
    /// neither input nor reply. If the conversation can't be shorter, it succeeds without a
    /// checkpoint.
    ///
    /// # Errors
    /// Another run of the session is active; [`queue_compaction`](Self::queue_compaction) waits for
    /// its end.
    pub fn compact(&self, options: RunOptions) -> Result<Run, RunActive> {
        let permit = self.0.turns.try_take().map_err(|_| RunActive { run: self.active_id() })?;
        Ok(Run::new(self.clone(), Vec::new(), RunOptions { compacts: true, ..options }, Some(permit)))
    }

    /// [Compacts](Self::compact) the conversation as soon as no other run of the session is active,
    /// as [`queue`](Self::queue) does.
    pub fn queue_compaction(&self, options: RunOptions) -> Run {
        let options = RunOptions { compacts: true, ..options };
        Run::new(self.clone(), Vec::new(), options, self.0.turns.try_take().ok())
    }

    /// The runs that wait for the active one to end, in the order in which they were queued.
    pub fn queued(&self) -> Vec<RunHandle> {
        self.0.turns.queued()
    }

    /// The runs that it had, those of earlier processes too, in order; [queued](Self::queued) ones
    /// are not among them yet, and those that were cancelled while they were queued [never
    /// began](RunRecord::never_began).
    pub fn runs(&self) -> Vec<RunRecord> {
        lock(&self.0.runs).clone()
    }

    /// Resumes a turn without an answer: its process ended, it failed, or it was cancelled. The
    /// agent continues from the recorded history. Existing results, including those of children,
    /// are reused; a call that was cut off has a result that states this, and the agent decides
    /// whether to repeat it.
    ///
    /// Options that are not set are taken from the turn's run: the user, the attributes, how
    /// children are treated. The run has what is left of the turn's budget.
    ///
    /// The run starts when it is first polled.
    ///
    /// # Errors
    /// The session has no turn, the latest run has its answer, or a run is active.
    pub fn resume(&self, options: RunOptions) -> Result<Run, NothingToResume> {
        // Held from here on, so that no other run resumes the same turn.
        let permit = self.0.turns.try_take().map_err(|_| NothingToResume::Active)?;
        let is_turn = |run: &&RunRecord| !run.never_began && !run.settings.compacts;
        let latest = lock(&self.0.runs).iter().rfind(is_turn).cloned();
        let latest = latest.ok_or(NothingToResume::New)?;
        match latest.end.as_ref().map(|end| end.outcome) {
            None => return Err(NothingToResume::New),
            Some(Outcome::Success) => return Err(NothingToResume::Answered),
            Some(_) => {}
        }
        let options = settings::resumed(options, &latest);
        // A model wants to be answered, not to be left in the middle of a sentence.
        let is_mid_sentence = self.history().last().is_none_or(|last| last.role == Role::Assistant);
        let input = if is_mid_sentence { vec![Arc::new(Message::user(GO_ON))] } else { Vec::new() };
        Ok(Run::new(self.clone(), input, options, Some(permit)))
    }

    /// Returns the active run, including one that the session began; `None` between runs.
    pub fn active(&self) -> Option<RunHandle> {
        self.0.turns.active()
    }

    fn active_id(&self) -> Option<RunId> {
        self.active().map(|run| run.id().clone())
    }

    /// What the fleet is doing now.
    ///
    /// Reads on from where the last call stopped; what the log's ring has dropped meanwhile is
    /// counted in [`FleetState::missed`].
    pub fn fleet(&self) -> FleetState {
        let mut watch = lock(&self.0.watch);
        let (cursor, state) = &mut *watch;
        let cursor = cursor.get_or_insert_with(|| self.0.log.recent_from(state.seq + 1));
        while let Some(event) = cursor.try_next() {
            state.apply(&event);
        }
        state.clone()
    }

    /// Returns what the fleet was doing after an earlier event; `None` if the session has no such
    /// event that is committed.
    ///
    /// It is read from the nearest of the states that were passed before. The journal has some of
    /// them, 16 384 events apart, from the end of a run on, or once such a call has passed them. Of
    /// a session in memory, only what its ring has is known; what is missing is counted in
    /// [`FleetState::missed`]. Dropping the future stops reading.
    pub async fn fleet_at(&self, seq: u64) -> Option<FleetState> {
        let journal = self.0.checkpoints.as_ref().map(|checkpoints| &**checkpoints.journal());
        self.0.moments.at(self.log(), seq, journal).await
    }

    /// An id for [`RunOptions::with_run_id`].
    pub fn new_run_id(&self) -> RunId {
        RunId::from_lossy(self.0.ids.next("run-"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("log", &self.0.log).finish_non_exhaustive()
    }
}
