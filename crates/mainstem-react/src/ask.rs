//! One model call: awaits deltas, and emits them as events.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt, stream};
use mainstem_event::EventKind;
use mainstem_message::{ContentBlock, DataSource, Message, Role, StopReason, ToolCallId, Usage};
use mainstem_model::{Model, ModelDelta, ModelStream};
use mainstem_tool::PollOnWake;
use tracing::Instrument;

use crate::{
    AgentError, AnswerLimits, RunContext,
    answer_limits::Length,
    replay, span,
    turn::{Attempt, Scope, Turn},
};

/// A model's complete answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The message, with its tool calls. Its content is empty if the answer is.
    pub message: Arc<Message>,
    /// Why it stopped.
    pub stop: StopReason,
    /// The usage that the service reports.
    pub usage: Option<Usage>,
    /// The usage is that of several prompts, or of a prompt to another model.
    pub(crate) is_repeated: bool,
    cost: Option<u64>,
}

impl Answer {
    /// Creates an answer that no model gave, such as one from a cache.
    pub fn new(message: Message) -> Self {
        Self {
            message: Arc::new(message),
            stop: StopReason::Stop,
            usage: None,
            is_repeated: false,
            cost: None,
        }
    }

    /// Returns what the call has cost, in millionths of a US dollar, at the prices of the models
    /// that have answered; `None` if it is not known.
    pub fn cost(&self) -> Option<u64> {
        self.cost
    }

    /// Returns `true` if it is the conversation's last answer already, or empty.
    pub(crate) fn is_emitted(&self, cx: &RunContext) -> bool {
        let is_last = |last: Arc<Message>| Arc::ptr_eq(&last, &self.message);
        self.message.content.is_empty() || last_answer(cx).is_some_and(is_last)
    }

    /// Returns the answer as a model would stream it, without its usage: the calls that it cost
    /// have been counted.
    pub(crate) fn replay(&self) -> ModelStream {
        let deltas = replay::deltas(&self.message).chain([ModelDelta::Stop(self.stop.clone())]);
        Box::pin(stream::iter(deltas.map(Ok).collect::<Vec<_>>()))
    }
}

/// What a call is within its invocation.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    /// Its number.
    pub(crate) iteration: u32,
    /// The limits of its answer.
    pub(crate) limits: AnswerLimits,
    /// The context window of its model, if it is known.
    pub(crate) window: Option<u64>,
}

/// How many answers of one invocation may be cut.
const MAX_CUTS: u32 = 32;

/// The model name of answers of a middleware.
const MIDDLEWARE: &str = "middleware";

/// Reads an answer and emits the call's events, from `MODEL_CALL_START` to `MODEL_CALL_END`.
/// `model` is `None` for an answer of a middleware.
pub(crate) fn ask<'a>(
    cx: &'a RunContext,
    model: Option<&'a dyn Model>,
    what: Call,
    stream: ModelStream,
) -> impl Future<Output = Result<Answer, AgentError>> + Send + 'a {
    let (name, provider) = (model.map(Model::name), model.and_then(Model::provider));
    let call = run_call(cx, name, what, stream).inspect(|answer| span::chatted(answer.as_ref()));
    call.instrument(span::chat(name.unwrap_or(MIDDLEWARE), provider))
}

async fn run_call(
    cx: &RunContext,
    model: Option<&str>,
    Call { iteration, limits, window }: Call,
    stream: ModelStream,
) -> Result<Answer, AgentError> {
    let started = cx.now();
    cx.emit(
        EventKind::model_call_start(model.unwrap_or(MIDDLEWARE), iteration)
            .with_purpose(cx.purpose())
            .with_context_window(window),
    );
    let mut guard = UsageGuard { cx, model, attempts: Vec::new() };
    let mut turn = Turn::new(iteration.to_string(), Length::new(limits, cx.answered()));
    let mut scope = Within { cx, notes: cx.purpose().map(|_| String::new()) };
    let result = tokio::select! {
        biased;
        () = PollOnWake::new(cx.cancelled()) => Err(AgentError::cancelled(cx)),
        result = read(stream, &mut turn, &mut scope) => result,
    };
    turn.finish(&mut scope);
    let stop = match &result {
        Ok(()) => turn.stop.take().unwrap_or(StopReason::Stop),
        Err(AgentError::Cancelled(_)) => StopReason::Cancelled,
        Err(_) => StopReason::Error,
    };
    guard.attempts = turn.attempts().collect();
    let is_repeated = !turn.is_of_one_prompt();
    let (usage, cost) = (guard.usage(), guard.cost());
    drop(guard);
    let duration_ms = cx.now().millis_since(started);
    let before = last_answer(cx);
    let end = EventKind::model_call_end(stop.clone(), duration_ms).with_usage(usage);
    cx.emit(end.with_rate_limits(turn.rate_limits));
    result?;
    if let Some(notes) = scope.notes {
        return Ok(Answer { message: Arc::new(Message::assistant(notes)), stop, usage, is_repeated, cost });
    }
    let message =
        last_answer(cx).filter(|now| before.as_ref().is_none_or(|before| !Arc::ptr_eq(now, before)));
    let message = message.unwrap_or_else(|| Arc::new(Message::new(Role::Assistant, Vec::new())));
    cx.count_answer(message.content.iter().map(bytes_of).sum());
    Ok(Answer { message, stop, usage, is_repeated, cost })
}

async fn read(mut stream: ModelStream, turn: &mut Turn, scope: &mut Within<'_>) -> Result<(), AgentError> {
    let cx = scope.cx;
    while let Some(delta) = stream.next().await {
        turn.push(delta?, scope)?;
        cx.settle().await;
        recorded(cx)?;
    }
    Ok(())
}

/// Fails if the record has failed: further work would be lost.
pub(crate) fn recorded(cx: &RunContext) -> Result<(), AgentError> {
    match cx.unrecorded() {
        None => Ok(()),
        Some(why) => Err(AgentError::Unrecorded { why: why.clone() }),
    }
}

/// Counts a model call when it is dropped. A call that is dropped half way has an unknown cost.
struct UsageGuard<'a> {
    cx: &'a RunContext,
    model: Option<&'a str>,
    /// Each on its own: prices depend on the length of a prompt.
    attempts: Vec<Attempt>,
}

impl UsageGuard<'_> {
    fn usage(&self) -> Option<Usage> {
        self.attempts.iter().map(|attempt| attempt.usage).reduce(|all, more| all + more)
    }

    fn cost(&self) -> Option<u64> {
        let Some(asked) = self.model else { return Some(0) };
        let of =
            |Attempt { fallback, usage }: &Attempt| self.cx.cost(fallback.as_deref().unwrap_or(asked), usage);
        if self.attempts.is_empty() { None } else { self.attempts.iter().map(of).sum() }
    }
}

impl Drop for UsageGuard<'_> {
    fn drop(&mut self) {
        self.cx.meter().add_own(self.usage().unwrap_or_default(), self.cost());
    }
}

/// The scope of a turn: its invocation.
struct Within<'a> {
    cx: &'a RunContext,
    /// The text so far, of a call that is not for the agent's answer.
    notes: Option<String>,
}

impl Scope for Within<'_> {
    fn emit(&mut self, kind: EventKind) {
        match &mut self.notes {
            Some(notes) => note(self.cx, notes, kind),
            None => _ = self.cx.emit(kind),
        }
    }

    fn is_taken(&self, id: &ToolCallId) -> bool {
        self.cx.with_transcript(|transcript| transcript.has_call(id))
    }

    fn new_call_id(&mut self) -> ToolCallId {
        ToolCallId::new(self.cx.new_id("call-"))
    }

    fn count_cut(&mut self) -> Result<(), AgentError> {
        match self.cx.count_cut() {
            ..=MAX_CUTS => Ok(()),
            cuts => Err(AgentError::CutTooOften { cuts }),
        }
    }
}

/// Adds an event of a call that is not for the agent's answer to its text; reports are emitted.
fn note(cx: &RunContext, notes: &mut String, kind: EventKind) {
    match kind {
        EventKind::TextBlockDelta { delta, .. } => notes.push_str(&delta),
        EventKind::ModelRetry { attempt, wait_ms, error, .. } => {
            notes.clear();
            cx.emit(EventKind::model_retry(attempt, wait_ms, error));
        }
        EventKind::ModelFallback { from, to, reason, .. } => {
            notes.clear();
            cx.emit(EventKind::model_fallback(from, to, reason));
        }
        EventKind::StreamFallback { .. }
        | EventKind::RateLimitWait { .. }
        | EventKind::RateLimitPassed { .. } => _ = cx.emit(kind),
        _ => {}
    }
}

fn bytes_of(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text { text, .. } => text.len(),
        ContentBlock::Thinking { thinking, .. } => thinking.len(),
        ContentBlock::Data { source: DataSource::Base64(data), .. } => data.len(),
        ContentBlock::ToolCall(call) => call.arguments.len(),
        _ => 0,
    }
}

fn last_answer(cx: &RunContext) -> Option<Arc<Message>> {
    cx.with_transcript(|transcript| transcript.last_answer().cloned())
}
