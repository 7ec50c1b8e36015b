//! One turn of a session, as an owned stream.

use std::{
    any::type_name,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::{FusedStream, Stream};
use mainstem_event::{AgentEvent, CancelReason, Diagnostics};
use mainstem_message::{Failure, Message, RunId};
use mainstem_policy::PlanMode;
use mainstem_react::{Cancellation, RunContext, RunOutcome, RunStream, store_data};
use mainstem_subagent::Background;
use mainstem_tool::{ToolSet, unless};
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tracing::Span;

use crate::{
    RunAgents, RunEnd, RunError, RunHandle, RunOptions, RunStatus, Session,
    error::reply,
    reading::Reading,
    settings,
    turn::{Right, Turn},
};

/// A run: polling it drives the agent and its fleet and yields the events from the root's
/// `AGENT_START` to its `AGENT_END`. A run that is cancelled while it is queued yields no event;
/// the session's log has one event of it
/// ([`is_queued_run_cancel`](AgentEvent::is_queued_run_cancel)).
///
/// Dropping it stops the agents at once; their messages until then stay in the session's history. A
/// [`RunHandle`] stops it gracefully.
///
/// ```
/// use std::sync::Arc;
///
/// use futures_util::StreamExt;
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
/// let mut run = session.run("Hi")?;
/// while let Some(event) = run.next().await {
///     println!("{event}");
/// }
/// assert!(run.outcome().is_some_and(|outcome| outcome.answer.is_some()));
/// # Ok(())
/// # }
/// ```
#[must_use = "a run does nothing unless polled"]
pub struct Run {
    // Dropped in this order: the work, what is held for it, then the status, by which handles learn
    // that both are.
    state: State,
    held: Option<Box<dyn Send>>,
    handle: RunHandle,
    status: watch::Sender<RunStatus>,
    reading: Arc<Reading>,
}

enum State {
    /// Not polled yet, or queued behind another run of the session.
    Waiting(Pin<Box<dyn Future<Output = Result<Active, RunOutcome>> + Send>>),
    Running(Box<Active>),
    Over(Option<RunOutcome>),
}

struct Active {
    // Dropped in this order: the work, then its messages are stored, then the next run can begin.
    stream: RunStream,
    /// Stops the run when the time of its budget is over.
    time: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Whether it was cancelled because the session can no longer be recorded.
    is_stopped: bool,
    _closing: Closing,
    _turn: Turn,
}

/// Stores the messages of the run, however it ends, and cancels the background tasks that must not
/// outlive it.
struct Closing {
    session: Session,
    run: RunId,
    cx: RunContext,
    background: Background,
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.session.store_messages(&self.cx);
        self.session.fleet_of().end_root_turn();
        self.session.end_run(&self.run, RunEnd::dropped);
        self.session.store_spent(&self.run, &self.cx);
        if self.background == Background::Cancel {
            let reason = self.cx.cancellation().reason().map(|reason| reason.below(self.cx.agent()));
            let reason = reason.unwrap_or(CancelReason::RunEnded);
            self.session.task_set().cancel_below(self.session.id(), &reason);
        }
    }
}

impl Run {
    /// A run that has the session's turn, or is queued for it without a permit.
    pub(crate) fn new(
        session: Session,
        input: Vec<Arc<Message>>,
        mut options: RunOptions,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let id = options.run_id.take().unwrap_or_else(|| session.new_run_id());
        let cancel = Cancellation::new();
        let begins = if permit.is_some() { RunStatus::Running } else { RunStatus::Queued };
        let (status, state) = watch::channel(begins);
        let reading = Arc::new(Reading::new(options.diagnostics));
        let handle = RunHandle::new(session, id, cancel.clone(), state, &options, reading.clone());
        let right = match permit {
            Some(permit) => Right::held(&handle, Some(permit)),
            None => Right::queued(&handle),
        };
        let start = Start { input, options, cancel, handle: handle.clone(), right };
        let state = State::Waiting(Box::pin(start.start()));
        Self { state, held: None, handle, status, reading }
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        self.handle.id()
    }

    /// A handle to look on and to stop the run. It does not keep the run alive.
    pub fn handle(&self) -> RunHandle {
        self.handle.clone()
    }

    /// How well the run arrives, so far: see [`RunHandle::diagnostics`].
    pub fn diagnostics(&self) -> Diagnostics {
        self.handle.diagnostics()
    }

    /// How the run ended; `None` while it goes on.
    pub fn outcome(&self) -> Option<&RunOutcome> {
        match &self.state {
            State::Over(outcome) => outcome.as_ref(),
            State::Waiting(_) | State::Running(_) => None,
        }
    }

    /// Lets the session's task set drive the run, to its end or until the set shuts down. Its
    /// events are in the session's log; the handle cancels it.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn detach(self) -> RunHandle {
        self.detach_with(())
    }

    /// Detaches the run as [`detach`](Self::detach) does, and drops `held` once the run is over and
    /// before it is [released](RunHandle::released).
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn detach_with(mut self, held: impl Send + 'static) -> RunHandle {
        self.held = Some(Box::new(held));
        let (handle, tasks) = (self.handle(), self.handle.session().task_set().clone());
        let stopped = handle.clone();
        let on_shutdown = move || stopped.cancel_because(CancelReason::Shutdown);
        tasks.drive_with(async move { drop(self.reply().await) }, on_shutdown);
        handle
    }

    /// Reads to the end and returns the reply.
    ///
    /// # Errors
    /// The run has no reply; the error is the cause. Dropping the future stops the run.
    pub async fn reply(mut self) -> Result<Message, RunError> {
        while std::future::poll_fn(|cx| Pin::new(&mut self).poll_next(cx)).await.is_some() {}
        match self.state {
            State::Over(Some(outcome)) => reply(outcome),
            _ => Err(RunError::Cancelled(CancelReason::Dropped)),
        }
    }

    /// Reads to the end and returns the value in the reply, whose form is that of
    /// [`RunOptions::with_output`].
    ///
    /// # Errors
    /// The run has no reply, or the reply is not such a value. Dropping the future stops the run.
    pub async fn reply_as<T: DeserializeOwned>(self) -> Result<T, RunError> {
        let text = self.reply().await?.text();
        let mut json = serde_json::Deserializer::from_str(&text);
        serde_path_to_error::deserialize(&mut json)
            .map_err(|error| RunError::Output { what: type_name::<T>(), why: error.to_string() })
    }
}

/// What a run begins with.
struct Start {
    input: Vec<Arc<Message>>,
    options: RunOptions,
    cancel: Cancellation,
    handle: RunHandle,
    right: Right,
}

impl Start {
    /// Waits for its turn, then starts.
    ///
    /// # Errors
    /// It was cancelled while it was queued, or its agent can't lead; the error is its outcome.
    async fn start(self) -> Result<Active, RunOutcome> {
        let Self { input, options, cancel, handle, right } = self;
        let (session, run_id) = (handle.session().clone(), handle.id().clone());
        let turn = right.wait(handle, cancel.token()).await;
        session.open_record().await;
        let turn = match turn {
            Ok(turn) => turn,
            // Leaves the queue once the session has a record of it.
            Err(_queued) => {
                let reason = cancel.reason().unwrap_or(CancelReason::User { how: None });
                if !(options.is_stored && matches!(reason, CancelReason::Shutdown)) {
                    session.never_began(&run_id, Failure::from(&reason));
                }
                return Err(RunOutcome::cancelled(reason));
            }
        };
        let agents = session.agents(&options).await;
        let agents = match agents.and_then(|agents| with_tools(agents, &options.tools)) {
            Ok(agents) => agents,
            Err(why) => {
                session.never_began(&run_id, why.clone());
                return Err(RunOutcome::refused(why));
            }
        };
        let data = session.data_store();
        let input = match &data {
            // A run that is cancelled meanwhile begins with its data in the message.
            Some(data) => {
                let stored = unless(cancel.token().cancelled(), store_data(&**data, input.clone())).await;
                stored.unwrap_or(input)
            }
            None => input,
        };
        // Nothing waits from here on, so it has an end whatever happens.
        let settings = settings::recorded(&options);
        session.begin_run(&run_id, settings.clone());
        session.look_out(&options);
        session.log().set_buffer(options.buffer.unwrap_or_else(|| session.buffer()));
        if let Some(plans) = options.plan_mode {
            session.set_plan_mode(if plans { PlanMode::On } else { PlanMode::Off });
        }
        let cx = session.context(&agents, run_id.clone(), &options, settings, cancel);
        let cx = session.fleet_of().with_deadline(cx);
        let time = session.fleet_of().time_run(cx.clone()).map(|time| Box::pin(time) as _);
        let input = match input.is_empty() {
            // A turn that goes on reads what was sent to it.
            true => input,
            false => session.fleet_of().take_unread().into_iter().chain(input).collect(),
        };
        let span = options.span.unwrap_or_else(Span::current);
        let stream = span.in_scope(|| agents.root().stream_in(cx.clone(), session.history(), input));
        Ok(Active {
            stream,
            time,
            is_stopped: false,
            _closing: Closing { session, run: run_id, cx, background: options.spawn.background },
            _turn: turn,
        })
    }
}

/// Adds the tools of a run to the agent that leads it.
fn with_tools(agents: RunAgents, tools: &ToolSet) -> Result<RunAgents, Failure> {
    if tools.names().next().is_none() {
        return Ok(agents);
    }
    let root = agents.root().with_tools(tools);
    let root = root.map_err(|error| Failure::new("tool_name_taken", error.to_string()))?;
    Ok(agents.with_root(root))
}

impl Stream for Run {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        let me = &mut *self;
        loop {
            match &mut me.state {
                State::Waiting(start) => match ready!(start.as_mut().poll(cx)) {
                    Ok(active) => {
                        me.state = State::Running(Box::new(active));
                        me.status.send_if_modified(RunStatus::begin);
                    }
                    Err(ended) => {
                        me.state = State::Over(Some(ended.clone()));
                        me.status.send_replace(RunStatus::Ended(Box::new(ended)));
                    }
                },
                State::Running(active) => {
                    if active.time.as_mut().is_some_and(|time| time.as_mut().poll(cx).is_ready()) {
                        active.time = None;
                    }
                    let event = match Pin::new(&mut active.stream).poll_next(cx) {
                        Poll::Ready(event) => event,
                        Poll::Pending if !active.is_stopped && me.handle.session().has_failed() => {
                            // What it waits for may never come, and another process may have the
                            // session.
                            active.is_stopped = true;
                            me.handle.cancel_with_tasks(CancelReason::Unrecorded);
                            continue;
                        }
                        Poll::Pending => return Poll::Pending,
                    };
                    event.iter().for_each(|event| me.reading.handed(event));
                    if event.as_ref().is_none_or(AgentEvent::is_run_end) {
                        let outcome = active.stream.outcome().cloned();
                        if let Some(RunOutcome { outcome, answer, error, usage, .. }) = &outcome {
                            let error = error.as_ref().map(Failure::from);
                            let end = || RunEnd::new(*outcome, error, answer.clone(), *usage);
                            me.handle.session().end_run(me.handle.id(), end);
                            me.handle.session().checkpoint();
                        }
                        // A reader that sees the end finds the session free.
                        me.state = State::Over(outcome.clone());
                        if let Some(outcome) = outcome {
                            me.status.send_replace(RunStatus::Ended(Box::new(outcome)));
                        }
                    }
                    return Poll::Ready(event);
                }
                State::Over(_) => return Poll::Ready(None),
            }
        }
    }
}

impl FusedStream for Run {
    fn is_terminated(&self) -> bool {
        matches!(self.state, State::Over(_))
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("id", self.id()).field("outcome", &self.outcome()).finish_non_exhaustive()
    }
}
