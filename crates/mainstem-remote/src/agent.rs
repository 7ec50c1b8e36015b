//! The contract of a protocol in which an agent on another machine is driven.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use mainstem_event::{CancelReason, Decision, EventKind, EventSource, fold::RecordedTurn};
use mainstem_message::{ConfirmId, Message, ReplyId, SessionId, ToolCallId};
use mainstem_policy::{Budget, Rules};
use mainstem_tool::ToolOutput;
use serde_json::{Map, Value};

use crate::RemoteError;

/// An agent on another machine, in some protocol. [`RemoteRunner`](crate::RemoteRunner) makes a
/// child of a fleet of it.
///
/// An implementation translates; it decides nothing. The runner holds events to the laws, emits
/// them with their sources, asks for approvals, and ends the turn once, whatever the remote does.
#[async_trait]
pub trait RemoteAgent: fmt::Debug + Send + Sync + 'static {
    /// Begins a turn at the remote. Dropping the future before it returns may leave a turn running
    /// there.
    ///
    /// # Errors
    /// The remote can't be reached, or refuses the turn.
    async fn begin(&self, turn: RemoteTurn) -> Result<BegunTurn, RemoteError>;

    /// Returns `true` if turns can be [found again](Self::find).
    fn can_find(&self) -> bool {
        false
    }

    /// Finds a turn again that another process has begun, by its id or by the
    /// [ids](RemoteEvent::id) of the events that are recorded. Its events are those that the other
    /// process was sent, from the first one on; or, if they can't be read again, those that the
    /// record lacks ([`BegunTurn::with_fallback`]). If the request of the other process has never
    /// arrived, this begins the turn.
    ///
    /// # Errors
    /// The remote can't be reached or no longer has the turn, or can't tell whether it has begun.
    async fn find(&self, turn: RemoteTurn, recorded: &RecordedTurn) -> Result<BegunTurn, RemoteError> {
        let _ = (turn, recorded);
        Err(RemoteError::refused("the protocol can't find a turn again that another process has begun"))
    }
}

/// What a remote agent is asked to do, and within which bounds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoteTurn {
    /// The child's session. Turns of one session continue one conversation.
    pub session: SessionId,
    /// The id of this turn. A request that is sent twice with it has its effect once.
    pub id: ReplyId,
    /// The task, or a further message.
    pub task: String,
    /// The messages of earlier turns of the session, for a protocol whose servers keep none.
    pub history: Vec<Arc<Message>>,
    /// On whose behalf the run works.
    pub user: Option<Arc<str>>,
    /// Further data of the run.
    pub attributes: Map<String, Value>,
    /// How many levels of agents may be below the agent.
    pub levels: u16,
    /// What the turn may spend.
    pub budget: Budget,
    /// Which calls its agents may make. A protocol sends what it has a form for; whatever a remote
    /// makes of them, they hold for the calls that it asks about.
    pub rules: Rules,
    /// Whether agents may only read.
    pub plan_mode: bool,
    /// The `traceparent` for the requests of the turn.
    pub trace_parent: Option<String>,
    /// Whether requests for approval are answered.
    pub is_attended: bool,
}

impl RemoteTurn {
    /// Returns the attributes and the user, for protocols with metadata and without a user.
    pub(crate) fn metadata(&self) -> Map<String, Value> {
        let user = self.user.as_deref().map(|user| ("mainstem_user".to_owned(), user.into()));
        self.attributes.clone().into_iter().chain(user).collect()
    }

    /// # Errors
    /// Agents may only read, and the protocol can't say so.
    pub(crate) fn check_plan_mode(&self, protocol: &str) -> Result<(), RemoteError> {
        if !self.plan_mode {
            return Ok(());
        }
        let what = format!("{protocol} can't hold an agent to reading, so it is not asked in plan mode");
        Err(RemoteError::refused(what))
    }
}

/// A turn that has begun.
#[non_exhaustive]
pub struct BegunTurn {
    /// Its events, each once and in order, from the `AGENT_START` to the `AGENT_END` of the agent
    /// that was asked. A protocol with a cursor reconnects within the stream.
    pub events: BoxStream<'static, Result<RemoteEvent, RemoteError>>,
    /// Steers it.
    pub control: Arc<dyn RemoteControl>,
    /// Why the events of a turn that was found again are those that its record lacks; `None` if
    /// they are all of its events.
    pub fallback: Option<String>,
}

impl BegunTurn {
    /// Creates it from both halves.
    pub fn new(
        events: BoxStream<'static, Result<RemoteEvent, RemoteError>>,
        control: Arc<dyn RemoteControl>,
    ) -> Self {
        Self { events, control, fallback: None }
    }

    /// Says why the events of a turn that was [found again](RemoteAgent::find) are only those that
    /// its record lacks. What is open in the record is discarded, and the agents below that are
    /// running end; the first event follows, which is no `AGENT_START`. A
    /// [`Translation::recorded`](crate::Translation::recorded) writes such events.
    #[must_use]
    pub fn with_fallback(mut self, reason: impl Into<String>) -> Self {
        self.fallback = Some(reason.into());
        self
    }
}

impl fmt::Debug for BegunTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BegunTurn").finish_non_exhaustive()
    }
}

/// Steers a running turn.
#[async_trait]
pub trait RemoteControl: Send + Sync + 'static {
    /// Asks the agent to stop. The end arrives as an event.
    ///
    /// # Errors
    /// The remote can't be reached, or refuses.
    async fn cancel(&self, reason: &CancelReason) -> Result<(), RemoteError>;

    /// Answers a request for approval.
    ///
    /// # Errors
    /// As [`cancel`](Self::cancel), or the request was answered before. A remote that can't be
    /// reached ends the turn; one that refuses the answer does not.
    async fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), RemoteError>;

    /// Returns the result of a call that the remote lets its caller run.
    ///
    /// # Errors
    /// As [`cancel`](Self::cancel), or the call has its result.
    async fn submit(&self, call: &ToolCallId, output: ToolOutput) -> Result<(), RemoteError>;
}

/// An event of a remote agent, or of an agent below it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoteEvent {
    /// The agent below the one that was asked; `None` for that one itself. Session ids, keys and
    /// depths are the remote's; the parent of the first level has the session of the
    /// [`RemoteTurn`].
    pub source: Option<Arc<EventSource>>,
    /// What happened.
    pub kind: EventKind,
    /// Its id at the remote, which the event's metadata has as `remoteId`.
    pub id: Option<String>,
}

impl RemoteEvent {
    /// Creates an event of the agent that was asked.
    pub fn new(kind: EventKind) -> Self {
        Self { source: None, kind, id: None }
    }

    /// Sets the agent below it that the event is of.
    #[must_use]
    pub fn with_source(mut self, source: Option<Arc<EventSource>>) -> Self {
        self.source = source;
        self
    }

    /// Sets its id at the remote.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
}
