//! What the loop, a middleware and the engine's own tools know about the invocation they work in.

mod builder;
mod call;

use std::{
    any::Any,
    fmt,
    future::Future,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use mainstem_event::{
    CancelReason, EventKind, EventSink, EventSource, Ids, RunSettings, Timestamp, fold::Transcript,
};
use mainstem_message::{AgentKey, Message, ReplyId, RunId, SessionId, StopReason, ToolCallId, Usage};
use mainstem_policy::{Price, Prices};
use mainstem_tool::{Artifacts, ToolContext};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub use self::builder::RunContextBuilder;
use self::call::Call;
use crate::{Cancellation, Declaration, Gate, Meter, OutputSchema, extensions::Extensions, span::Unawaited};

/// One invocation of an agent, as the engine sees it: its events and conversation, its cancellation, what it costs, and what every tool
/// call has to pass. Cheap to clone; explicit, never ambient.
///
/// The loop, middleware and subagents work with it. A tool gets a [`ToolContext`], from which [`of`](Self::of) leads back here: that is for
/// tools that are a part of the engine, such as those that spawn agents.
#[derive(Clone)]
pub struct RunContext {
    shared: Arc<Shared>,
    invocation: Arc<Invocation>,
    extensions: Extensions,
    call: Option<ToolCallId>,
    deadline: Option<Timestamp>,
    /// Why the next invocation begins, if nothing waits for it.
    cause: Option<Arc<Unawaited>>,
    /// What a crate above this one knows about the invocation.
    attachment: Option<Arc<dyn Any + Send + Sync>>,
}

/// The same for all agents of a run.
struct Shared {
    ids: Arc<dyn Ids>,
    /// What the tokens of children hang off that may outlive the run.
    lifetime: CancellationToken,
    prices: Arc<Prices>,
    /// The price of the model that was asked first, which most agents of a run think with: looking one up takes longer than an event.
    priced: OnceLock<(Box<str>, Option<Price>)>,
    gate: Option<Arc<dyn Gate>>,
    artifacts: Option<Arc<dyn Artifacts>>,
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
    /// When that was, in microseconds.
    latest_at: AtomicU64,
    meter: Meter,
    above: Option<Meter>,
    declaration: Option<Arc<Declaration>>,
}

impl RunContext {
    /// The context of a root's invocation, on a sink that stamps with its reply.
    pub fn root(agent: impl Into<Arc<str>>, sink: EventSink) -> RunContextBuilder {
        RunContextBuilder::new(agent.into(), sink)
    }

    /// The context of a child's invocation: same run, its own events, a token and a meter below this one's.
    #[must_use]
    pub fn child(&self, source: EventSource, reply_id: ReplyId) -> Self {
        self.child_with(source, reply_id, None, self.invocation.cancel.below(self.agent()))
    }

    /// The same for a child that may outlive this invocation: its token hangs off the session's. Whoever waits for the child passes a
    /// cancel of this invocation on to it, for as long as it waits. `declaration` is what the child's `AGENT_START` records that it was
    /// spawned as.
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

    fn child_with(
        &self,
        source: EventSource,
        reply_id: ReplyId,
        declaration: Option<Arc<Declaration>>,
        cancel: Cancellation,
    ) -> Self {
        let agent = source.agent_id.clone();
        let invocation = Invocation {
            agent,
            transcript: Mutex::new(Transcript::new(reply_id.clone())),
            sink: self.invocation.sink.child(source, reply_id),
            cancel,
            latest: AtomicU64::new(0),
            latest_at: AtomicU64::new(0),
            meter: Meter::default(),
            above: Some(self.invocation.meter.clone()),
            declaration,
        };
        Self { invocation: Arc::new(invocation), call: None, ..self.clone() }
    }

    /// Returns the invocation that a tool's context belongs to, working on that call; `None` if no agent of this crate called the tool.
    pub fn of(cx: &ToolContext) -> Option<&Self> {
        cx.host::<Call>().map(Call::context)
    }

    /// The same invocation, working on one tool call.
    #[must_use]
    pub(crate) fn for_call(&self, call: ToolCallId) -> Self {
        Self { call: Some(call), ..self.clone() }
    }

    /// The context for a tool, of the call that this context works on, or else of `call`.
    pub(crate) fn tool_context(&self, call: &ToolCallId) -> ToolContext {
        let call = self.call.as_ref().unwrap_or(call);
        ToolContext::new(Arc::new(Call::new(self, call.clone())))
    }

    /// The same invocation with one more value for [`get`](Self::get), for whoever works with this context and for children begun with it.
    #[must_use]
    pub fn with_extension<T: Any + Send + Sync>(mut self, value: Arc<T>) -> Self {
        self.extensions.insert(value);
        self
    }

    /// The same invocation with a deadline, unless it has an earlier one: for tools, which see when the time of their call is over, and for
    /// children begun with it. The deadline cancels nothing.
    #[must_use]
    pub fn with_deadline(mut self, at: Timestamp) -> Self {
        self.deadline = Some(self.deadline.map_or(at, |earlier| earlier.min(at)));
        self
    }

    /// The same invocation for a child that nothing waits for: the span of the next invocation is linked to the current one.
    #[must_use]
    pub fn unawaited(mut self) -> Self {
        self.cause = Some(Unawaited::now());
        self
    }

    /// The same invocation with another [`attachment`](Self::attachment), also for children begun with it.
    #[must_use]
    pub fn with_attachment<T: Any + Send + Sync>(mut self, attachment: Arc<T>) -> Self {
        self.attachment = Some(attachment);
        self
    }

    /// Returns what a crate above this one attached to the run, if it is of this type: one value, in which that crate has all it knows
    /// about an invocation.
    pub fn attachment<T: Any>(&self) -> Option<&T> {
        self.attachment.as_deref()?.downcast_ref()
    }

    // What it is.

    /// The agent's id.
    pub fn agent(&self) -> &Arc<str> {
        &self.invocation.agent
    }

    /// The tool call that is being worked on.
    pub fn call_id(&self) -> Option<&ToolCallId> {
        self.call.as_ref()
    }

    /// Who the agent is; `None` for the root.
    pub fn source(&self) -> Option<&EventSource> {
        self.invocation.sink.origin().source.as_deref()
    }

    /// The instance; `None` for the root.
    pub fn agent_key(&self) -> Option<&AgentKey> {
        self.source().map(|source| &source.agent_key)
    }

    /// 0 for the root.
    pub fn depth(&self) -> u16 {
        self.source().map_or(0, |source| source.depth)
    }

    /// The agent's own session: the root's, or `sub-…`.
    pub fn session_id(&self) -> &SessionId {
        let origin = self.invocation.sink.origin();
        origin.source.as_ref().map_or(&origin.session_id, |source| &source.session_id)
    }

    /// The run.
    pub fn run_id(&self) -> Option<&RunId> {
        self.invocation.sink.origin().run_id.as_ref()
    }

    /// `<root session>[/<agent_id>…]`.
    pub fn path(&self) -> &str {
        let origin = self.invocation.sink.origin();
        origin.source.as_ref().map_or(origin.session_id.as_str(), |source| &source.path)
    }

    /// On whose behalf it works.
    pub fn user(&self) -> Option<&str> {
        self.shared.user.as_deref()
    }

    /// What the caller of the run attached to it.
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.shared.attributes
    }

    /// Where results are kept that are too long for the conversation, if there is a place.
    pub(crate) fn artifacts(&self) -> Option<&Arc<dyn Artifacts>> {
        self.shared.artifacts.as_ref()
    }

    /// A value of the embedding application, by its type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.extensions.get()
    }

    // What it can do.

    /// Records an event of this invocation, in the session and in its conversation; returns its number. Never waits.
    ///
    /// For the loop and for middleware; a tool streams through [`ToolContext::progress`]. A producer of many events awaits
    /// [`settle`](Self::settle) in between.
    pub fn emit(&self, kind: EventKind) -> u64 {
        self.with_transcript(|transcript| transcript.apply(&kind));
        let (seq, at) = self.invocation.sink.emit_timed(kind);
        self.invocation.latest.store(seq, Ordering::Relaxed);
        self.invocation.latest_at.store(at.as_micros(), Ordering::Relaxed);
        seq
    }

    /// The number of the invocation's latest event; 0 before the first.
    pub fn last_event(&self) -> u64 {
        self.invocation.latest.load(Ordering::Relaxed)
    }

    /// When that was; `None` before the first.
    pub fn last_event_at(&self) -> Option<Timestamp> {
        let at = self.invocation.latest_at.load(Ordering::Relaxed);
        (self.last_event() > 0).then(|| Timestamp::from_micros(at))
    }

    /// Waits for the caller: see [`EventSink::settle`].
    pub fn settle(&self) -> impl Future<Output = ()> + Send {
        self.invocation.sink.settle()
    }

    /// Why the session's record keeps nothing more: the work must end. See [`SessionLog::failure`](mainstem_event::SessionLog::failure).
    pub(crate) fn unrecorded(&self) -> Option<&Arc<str>> {
        self.invocation.sink.log().failure()
    }

    /// Resolves when the invocation is asked to stop.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send {
        self.invocation.cancel.cancelled()
    }

    /// Returns `true` if the invocation was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.invocation.cancel.is_cancelled()
    }

    /// Returns the cancellation of the invocation and of the work below it that it waits for. It can be used without the context.
    pub fn cancellation(&self) -> &Cancellation {
        &self.invocation.cancel
    }

    /// Asks another invocation to stop because this one was asked to.
    pub fn pass_cancel_to(&self, other: &Self) {
        let reason = self.cancellation().reason().unwrap_or(CancelReason::RunEnded);
        other.cancellation().cancel(reason.below(self.agent()));
    }

    /// The time now, on the session's clock.
    pub fn now(&self) -> Timestamp {
        self.invocation.sink.log().clock().now()
    }

    /// When its time is over, at the earliest; `None` if it has no limit, and in a background task.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline.filter(|_| self.sink().task().is_none())
    }

    /// A new id that begins with `prefix`.
    pub fn new_id(&self, prefix: &str) -> String {
        self.shared.ids.next(prefix)
    }

    // What the loop keeps in it.

    /// What the caller has set for the run.
    pub(crate) fn settings(&self) -> Option<&Arc<RunSettings>> {
        self.shared.settings.as_ref()
    }

    /// The form that the answer of the run's root shall have.
    pub(crate) fn output(&self) -> Option<&OutputSchema> {
        self.shared.output.as_ref()
    }

    /// What the agent was spawned as, if that is to be recorded.
    pub(crate) fn declaration(&self) -> Option<&Declaration> {
        self.invocation.declaration.as_deref()
    }

    /// Why the next invocation begins, if nothing waits for it.
    pub(crate) fn cause(&self) -> Option<&Unawaited> {
        self.cause.as_deref()
    }

    /// What every tool call has to pass, if there is anything.
    pub(crate) fn gate(&self) -> Option<&Arc<dyn Gate>> {
        self.shared.gate.as_ref()
    }

    /// The sink of this invocation.
    pub fn sink(&self) -> &EventSink {
        &self.invocation.sink
    }

    /// What it has cost.
    pub fn meter(&self) -> &Meter {
        &self.invocation.meter
    }

    /// What a model call cost, in millionths of a dollar; `None` if the model's price is unknown, which is never the same as free.
    pub fn cost(&self, model: &str, usage: &Usage) -> Option<u64> {
        let Shared { prices, priced, .. } = &*self.shared;
        let (first, price) = priced.get_or_init(|| (model.into(), prices.price(model)));
        let price = if **first == *model { *price } else { prices.price(model) };
        Some(price?.of(usage).micros())
    }

    /// What the parent's invocation has cost; `None` for the root.
    pub(crate) fn meter_above(&self) -> Option<&Meter> {
        self.invocation.above.as_ref()
    }

    /// What was said in this invocation so far.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.with_transcript(|transcript| transcript.messages().to_vec())
    }

    /// Closes whatever is open in the conversation: blocks, calls, a model call that ended for this reason, results.
    pub fn close(&self, reason: &StopReason) {
        while let Some(kind) = self.with_transcript(|transcript| transcript.next_closing(reason.clone())) {
            self.emit(kind);
        }
    }

    /// Looks into the conversation; the closure must not emit.
    pub fn with_transcript<R>(&self, f: impl FnOnce(&mut Transcript) -> R) -> R {
        f(&mut self.invocation.transcript.lock().unwrap_or_else(PoisonError::into_inner))
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
