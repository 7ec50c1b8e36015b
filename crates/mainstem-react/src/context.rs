//! What the loop, a middleware and the engine's own tools know about the invocation they work in.

mod builder;
mod call;
mod carried;
mod events;
mod identity;

use std::{
    any::Any,
    fmt,
    future::Future,
    sync::{Arc, Mutex, OnceLock, atomic::AtomicU64},
};

use mainstem_event::{CancelReason, EventSink, EventSource, Ids, RunSettings, Timestamp, fold::Transcript};
use mainstem_message::{ReplyId, ToolCallId, Usage};
use mainstem_policy::{Price, Prices};
use mainstem_tool::{Artifacts, ToolContext};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub use self::builder::RunContextBuilder;
use self::call::Call;
use crate::{Cancellation, Declaration, Gate, Meter, OutputSchema, extensions::Extensions, span::Unawaited};

/// One invocation of an agent, as the engine sees it: its events and conversation, its
/// cancellation, what it costs, and what every tool call has to pass. Cheap to clone; explicit,
/// never ambient.
///
/// The loop, middleware and subagents work with it. A tool gets a [`ToolContext`], from which
/// [`of`](Self::of) leads back here: that is for tools that are a part of the engine, such as those
/// that spawn agents.
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
    /// The price of the model that was asked first, which most agents of a run think with: looking
    /// one up takes longer than an event.
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

    /// The context of a child's invocation: same run, its own events, a token and a meter below
    /// this one's.
    #[must_use]
    pub fn child(&self, source: EventSource, reply_id: ReplyId) -> Self {
        self.child_with(source, reply_id, None, self.invocation.cancel.below(self.agent()))
    }

    /// The same for a child that may outlive this invocation: its token hangs off the session's.
    /// Whoever waits for the child passes a cancel of this invocation on to it, for as long as it
    /// waits. `declaration` is what the child's `AGENT_START` records that it was spawned as.
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

    /// Returns the invocation that a tool's context belongs to, working on that call; `None` if no
    /// agent of this crate called the tool.
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

    /// The same invocation with a deadline, unless it has an earlier one: for tools, which see when
    /// the time of their call is over, and for children begun with it. The deadline cancels
    /// nothing.
    #[must_use]
    pub fn with_deadline(mut self, at: Timestamp) -> Self {
        self.deadline = Some(self.deadline.map_or(at, |earlier| earlier.min(at)));
        self
    }

    /// Resolves when the invocation is asked to stop.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send {
        self.invocation.cancel.cancelled()
    }

    /// Returns `true` if the invocation was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.invocation.cancel.is_cancelled()
    }

    /// Returns the cancellation of the invocation and of the work below it that it waits for. It
    /// can be used without the context.
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

    /// What it has cost.
    pub fn meter(&self) -> &Meter {
        &self.invocation.meter
    }

    /// What a model call cost, in millionths of a dollar; `None` if the model's price is unknown,
    /// which is never the same as free.
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
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path();
        f.debug_struct("RunContext").field("path", &path).field("call", &self.call).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
