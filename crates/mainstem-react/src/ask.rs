//! One model call: waits for deltas, and says what they mean.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use mainstem_event::EventKind;
use mainstem_message::{ContentBlock, DataSource, Message, Role, StopReason, ToolCallId, Usage};
use mainstem_model::{Model, ModelDelta, ModelStream};
use mainstem_tool::Seldom;
use tracing::Instrument;

use crate::{
    AgentError, AnswerLimits, RunContext,
    answer_limits::Length,
    replay, span,
    turn::{Scope, Turn},
};

/// A model's complete answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// What it said, tool calls included. Without content if it said nothing.
    pub message: Arc<Message>,
    /// Why it stopped.
    pub stop: StopReason,
    /// What the service counted.
    pub usage: Option<Usage>,
}

impl Answer {
    /// An answer that no model gave, such as one from a cache.
    pub fn new(message: Message) -> Self {
        Self { message: Arc::new(message), stop: StopReason::Stop, usage: None }
    }

    /// Whether it is what the conversation's last answer is. Nothing needs not be said.
    pub(crate) fn is_said(&self, cx: &RunContext) -> bool {
        let is_last = |last: Arc<Message>| Arc::ptr_eq(&last, &self.message);
        self.message.content.is_empty() || last_answer(cx).is_some_and(is_last)
    }

    /// The answer as a model would stream it. Its usage is left out: what it cost, its own calls
    /// have said.
    pub(crate) fn replay(&self) -> ModelStream {
        let deltas = replay::deltas(&self.message).chain([ModelDelta::Stop(self.stop.clone())]);
        Box::pin(stream::iter(deltas.map(Ok).collect::<Vec<_>>()))
    }
}

/// Whose answer it is that no model gave.
const MIDDLEWARE: &str = "middleware";

/// Reads an answer and emits the call's events, from `MODEL_CALL_START` to `MODEL_CALL_END`.
/// Without a model, it is a middleware's.
pub(crate) async fn ask(
    cx: &RunContext,
    model: Option<&dyn Model>,
    iteration: u32,
    limits: AnswerLimits,
    stream: ModelStream,
) -> Result<Answer, AgentError> {
    let (name, provider) = (model.map(Model::name), model.and_then(Model::provider));
    let call = async {
        let answer = hear(cx, name, iteration, limits, stream).await;
        span::chatted(answer.as_ref());
        answer
    };
    call.instrument(span::chat(name.unwrap_or(MIDDLEWARE), provider)).await
}

async fn hear(
    cx: &RunContext,
    model: Option<&str>,
    iteration: u32,
    limits: AnswerLimits,
    stream: ModelStream,
) -> Result<Answer, AgentError> {
    let started = cx.now();
    cx.emit(EventKind::ModelCallStart { model_name: model.unwrap_or(MIDDLEWARE).into(), iteration });
    let mut bill = Bill { cx, model, usage: None };
    let mut turn = Turn::new(iteration.to_string(), Length::new(limits, said(cx)));
    let result = tokio::select! {
        biased;
        () = Seldom::new(cx.cancelled()) => Err(AgentError::cancelled(cx)),
        result = read(stream, &mut turn, cx) => result,
    };
    turn.finish(&mut Within(cx));
    let stop = match &result {
        Ok(()) => turn.stop.take().unwrap_or(StopReason::Stop),
        Err(AgentError::Cancelled(_)) => StopReason::Cancelled,
        Err(_) => StopReason::Error,
    };
    let usage = turn.usage;
    bill.usage = usage;
    drop(bill);
    let duration_ms = cx.now().millis_since(started);
    let before = last_answer(cx);
    cx.emit(EventKind::ModelCallEnd { usage, stop_reason: stop.clone(), duration_ms });
    result?;
    let message =
        last_answer(cx).filter(|now| before.as_ref().is_none_or(|before| !Arc::ptr_eq(now, before)));
    let message = message.unwrap_or_else(|| Arc::new(Message::new(Role::Assistant, Vec::new())));
    Ok(Answer { message, stop, usage })
}

async fn read(mut stream: ModelStream, turn: &mut Turn, cx: &RunContext) -> Result<(), AgentError> {
    while let Some(delta) = stream.next().await {
        turn.push(delta?, &mut Within(cx))?;
        cx.settle().await;
        recorded(cx)?;
    }
    Ok(())
}

/// What can't be kept is not worth its cost.
pub(crate) fn recorded(cx: &RunContext) -> Result<(), AgentError> {
    match cx.unrecorded() {
        None => Ok(()),
        Some(why) => Err(AgentError::Unrecorded { why: why.clone() }),
    }
}

/// Counts a model call, also one that is dropped half way: of that nobody knows what it cost.
struct Bill<'a> {
    cx: &'a RunContext,
    model: Option<&'a str>,
    usage: Option<Usage>,
}

impl Drop for Bill<'_> {
    fn drop(&mut self) {
        let cost = match self.model {
            Some(model) => self.usage.and_then(|usage| self.cx.cost(model, &usage)),
            None => Some(0),
        };
        self.cx.meter().add_own(self.usage.unwrap_or_default(), cost);
    }
}

/// An invocation, as a turn sees it.
struct Within<'a>(&'a RunContext);

impl Scope for Within<'_> {
    fn emit(&mut self, kind: EventKind) {
        self.0.emit(kind);
    }

    fn is_taken(&self, id: &ToolCallId) -> bool {
        let has = |message: &Arc<Message>| message.tool_calls().any(|call| call.id == *id);
        self.0.with_transcript(|transcript| transcript.messages().iter().any(has))
    }

    fn new_call_id(&mut self) -> ToolCallId {
        ToolCallId::new(self.0.new_id("call-"))
    }
}

/// Returns the bytes of the invocation's answers so far.
fn said(cx: &RunContext) -> usize {
    let bytes = |block: &ContentBlock| match block {
        ContentBlock::Text { text, .. } => text.len(),
        ContentBlock::Thinking { thinking, .. } => thinking.len(),
        ContentBlock::Data { source: DataSource::Base64(data), .. } => data.len(),
        ContentBlock::ToolCall(call) => call.arguments.len(),
        _ => 0,
    };
    cx.with_transcript(|transcript| {
        let answers = transcript.messages().iter().filter(|message| message.role == Role::Assistant);
        answers.flat_map(|message| &message.content).map(bytes).sum()
    })
}

fn last_answer(cx: &RunContext) -> Option<Arc<Message>> {
    cx.with_transcript(|transcript| transcript.last_answer().cloned())
}
