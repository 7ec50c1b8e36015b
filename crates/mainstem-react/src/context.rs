//! The context of an invocation, for the loop, middleware and the engine's tools.

mod builder;
mod call;
mod carried;
mod events;
mod identity;

use std::{
    any::Any,
    fmt,
    future::Future,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU32, AtomicU64, AtomicUsize},
    },
};

use mainstem_event::{
    CallPurpose, CancelReason, EventSink, EventSource, Ids, RunSettings, Timestamp,
    fold::{RecordedInvocation, Transcript},
};
use mainstem_message::{ReplyId, ToolCallId, Usage};
use mainstem_policy::{Price, Prices};
use mainstem_tool::{Artifacts, ToolContext};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub use self::builder::RunContextBuilder;
use self::call::Call;
use crate::{
    Cancellation, DataStore, Declaration, Gate, Meter, OutputSchema, extensions::Extensions, span::Unawaited,
};

/// One invocation of an agent, as the engine sees it: its events and conversation, its
/// cancellation, its cost, and the gate of its tool calls. Cheap to clone; explicit, never ambient.
///
/// The loop, middleware and subagents work with it. A tool gets a [`ToolContext`], from which
/// [`of`](Self::of) leads back here: that is for tools of the engine, such as those that spawn
/// agents.
///
/// ```
/// use mainstem_react::prelude::*;
///
/// struct Greeting;
///
/// impl Middleware for Greeting {
///     fn system_prompt(&self, cx: &RunContext) -> Option<String> {
///         cx.user().map(|user| format!("You are {}, and work for {user}.", cx.agent()))
///     }
/// }
/// ```
#[derive(Clone)]
pub struct RunContext {
    shared: Arc<Shared>,
    invocation: Arc<Invocation>,
    extensions: Extensions,
    call: Option<ToolCallId>,
    deadline: Option<Timestamp>,
    /// What its model calls are for, if not for the agent's answer.
    purpose: Option<CallPurpose>,
    /// The cause of the next invocation, if no caller awaits it.
    cause: Option<Arc<Unawaited>>,
    /// Whether the usage of its children is left out of its own.
    has_separate_usage: bool,
    /// The value that a crate above this one has attached.
    attachment: Option<Arc<dyn Any + Send + Sync>>,
}

/// What all agents of a run share.
struct Shared {
    ids: Arc<dyn Ids>,
    /// The parent of the tokens of children that may outlive the run.
    lifetime: CancellationToken,
    prices: Arc<Prices>,
    /// The price of the model that was called first, which most agents of a run use: a lookup takes
    /// longer than an event.
    priced: OnceLock<(Box<str>, Option<Price>)>,
    gate: Option<Arc<dyn Gate>>,
    artifacts: Option<Arc<dyn Artifacts>>,
    data: Option<Arc<dyn DataStore>>,
    settings: Option<Arc<RunSettings>>,
    output: Option<OutputSchema>,
    user: Option<Arc<str>>,
    attributes: Map<String, Value>,
}

/// One agent working on one input.
struct Invocation {
    agent: Arc<str>,
    sink: EventSink,
    transcript: Mutex<Transcript>,
    cancel: Cancellation,
    /// The number of its latest event.
    latest: AtomicU64,
    /// The time of that event, in microseconds.
    latest_at: AtomicU64,
    /// How many of its answers were cut.
    cuts: AtomicU32,
    /// The bytes of its answers.
    answered: AtomicUsize,
    meter: Meter,
    above: Option<Meter>,
    declaration: Option<Arc<Declaration>>,
}

impl RunContext {
    /// Returns the context of a root's invocation, on a sink that stamps with its reply.
    pub fn root(agent: impl Into<Arc<str>>, sink: EventSink) -> RunContextBuilder {
        RunContextBuilder::new(agent.into(), sink)
    }

    /// Returns the context of a child's invocation: same run, its own events, a token and a meter
    /// below this one's.
    #[must_use]
    pub fn child(&self, source: EventSource, reply_id: ReplyId) -> Self {
        self.child_with(source, reply_id, None, self.invocation.cancel.below(self.agent()))
    }

    /// Returns the context of a child that may outlive this invocation: its token is a child of the
    /// session's. A parent that awaits the child passes its own cancel on meanwhile. `declaration`
    /// is the spec that the child's `AGENT_START` records.
    #[must_use]
    pub fn detachable_child(
        &self,
        source: EventSource,
        reply_id: ReplyId,
        declaration: Option<Arc<Declaration>>,
    ) -> Self {
        let cancel = Cancellation::below_token(&self.shared.lifetime, CancelReason::Shutdown);
        self.child_with(source, reply_id, declaration, cancel)
    }

    /// Returns the context of a child's invocation that another process has begun, with the
    /// conversation and the usage that were recorded: its events continue those of the record.
    #[must_use]
    pub fn recorded_child(&self, recorded: &RecordedInvocation) -> Self {
        self.recorded_with(recorded, self.invocation.cancel.below(self.agent()))
    }

    /// Returns the context of a [recorded child](Self::recorded_child) that may outlive this
    /// invocation, as [`detachable_child`](Self::detachable_child) does.
    #[must_use]
    pub fn detachable_recorded_child(&self, recorded: &RecordedInvocation) -> Self {
        self.recorded_with(recorded, Cancellation::below_token(&self.shared.lifetime, CancelReason::Shutdown))
    }

    fn recorded_with(&self, recorded: &RecordedInvocation, cancel: Cancellation) -> Self {
        let source = recorded.origin.source.as_ref();
        let (latest, latest_at) = recorded.latest;
        self.below(Invocation {
            agent: source.map_or_else(|| self.agent().clone(), |source| source.agent_id.clone()),
            transcript: Mutex::new(recorded.transcript.clone()),
            sink: self.invocation.sink.resumed_child(&recorded.origin),
            cancel,
            latest: AtomicU64::new(latest),
            latest_at: AtomicU64::new(latest_at.as_micros()),
            cuts: AtomicU32::new(0),
            answered: AtomicUsize::new(0),
            meter: Meter::from(recorded.usage),
            above: Some(self.invocation.meter.clone()),
            declaration: None,
        })
    }

    fn child_with(
        &self,
        source: EventSource,
        reply_id: ReplyId,
        declaration: Option<Arc<Declaration>>,
        cancel: Cancellation,
    ) -> Self {
        self.below(Invocation {
            agent: source.agent_id.clone(),
            transcript: Mutex::new(Transcript::new(reply_id.clone())),
            sink: self.invocation.sink.child(source, reply_id),
            cancel,
            latest: AtomicU64::new(0),
            latest_at: AtomicU64::new(0),
            cuts: AtomicU32::new(0),
            answered: AtomicUsize::new(0),
            meter: Meter::default(),
            above: (!self.has_separate_usage).then(|| self.invocation.meter.clone()),
            declaration,
        })
    }

    fn below(&self, invocation: Invocation) -> Self {
        Self {
            invocation: Arc::new(invocation),
            call: None,
            purpose: None,
            has_separate_usage: false,
            ..self.clone()
        }
    }

    /// Returns the invocation of a tool's context, with its call; `None` if the tool was not called
    /// by an agent of this crate.
    pub fn of(cx: &ToolContext) -> Option<&Self> {
        cx.host::<Call>().map(Call::context)
    }

    /// Returns the context for one tool call.
    #[must_use]
    pub(crate) fn for_call(&self, call: ToolCallId) -> Self {
        Self { call: Some(call), ..self.clone() }
    }

    /// Returns the context for a tool, of the call of this context, or else of `call`.
    pub(crate) fn tool_context(&self, call: &ToolCallId) -> ToolContext {
        let call = self.call.as_ref().unwrap_or(call);
        ToolContext::new(Arc::new(Call::new(self, call.clone())))
    }

    /// Sets a deadline, unless an earlier one is set: for tools, which see when the time of their
    /// call is over, and for children begun with this context. The deadline cancels nothing.
    #[must_use]
    pub fn with_deadline(mut self, at: Timestamp) -> Self {
        self.deadline = Some(self.deadline.map_or(at, |earlier| earlier.min(at)));
        self
    }

    /// Returns the context for model calls that summarize the conversation.
    pub(crate) fn for_compaction(&self) -> Self {
        Self { purpose: Some(CallPurpose::Compaction), ..self.clone() }
    }

    /// Returns what the model calls of this context are for, if not for the agent's answer. A
    /// middleware passes such a call on as it is, unless it concerns all model calls.
    pub fn purpose(&self) -> Option<CallPurpose> {
        self.purpose
    }

    /// Resolves when the invocation is cancelled.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send {
        self.invocation.cancel.cancelled()
    }

    /// Returns `true` if the invocation is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.invocation.cancel.is_cancelled()
    }

    /// Returns the cancellation of the invocation and of the work that it awaits. It can be used
    /// without the context.
    pub fn cancellation(&self) -> &Cancellation {
        &self.invocation.cancel
    }

    /// Cancels another invocation because this one was cancelled.
    pub fn pass_cancel_to(&self, other: &Self) {
        let reason = self.cancellation().reason().unwrap_or(CancelReason::RunEnded);
        other.cancellation().cancel(reason.below(self.agent()));
    }

    /// Returns the time now, on the session's clock.
    pub fn now(&self) -> Timestamp {
        self.invocation.sink.log().clock().now()
    }

    /// Returns when its time is over, at the earliest; `None` without a limit, and in a background
    /// task.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline.filter(|_| self.sink().task().is_none())
    }

    /// Returns a new id that begins with `prefix`.
    pub fn new_id(&self, prefix: &str) -> String {
        self.shared.ids.next(prefix)
    }

    /// Returns its usage and cost so far.
    pub fn meter(&self) -> &Meter {
        &self.invocation.meter
    }

    /// Returns what a model call cost, in millionths of a dollar; `None` if the model's price is
    /// unknown, which is never the same as free.
    pub fn cost(&self, model: &str, usage: &Usage) -> Option<u64> {
        let Shared { prices, priced, .. } = &*self.shared;
        let (first, price) = priced.get_or_init(|| (model.into(), prices.price(model)));
        let price = if **first == *model { *price } else { prices.price(model) };
        Some(price?.of(usage).micros())
    }

    /// Returns the meter of the parent's invocation; `None` for the root.
    pub(crate) fn meter_above(&self) -> Option<&Meter> {
        self.invocation.above.as_ref()
    }
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path();
        f.debug_struct("RunContext").field("path", &path).field("call", &self.call).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
