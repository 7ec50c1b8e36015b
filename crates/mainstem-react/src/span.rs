//! Spans for `tracing`, with names and attributes of OpenTelemetry's [conventions] for generative
//! AI. They are the only ambient state: a span's parent is the current one when it is made, so a
//! child's invocation is below its parent's tool call. An invocation that no caller awaits has a
//! trace of its own, linked to that call.
//!
//! [conventions]: https://github.com/open-telemetry/semantic-conventions-genai

use std::sync::{Arc, Mutex, PoisonError};

use mainstem_message::{ToolCall, ToolState};
use tracing::{Span, field::Empty, info_span};

use crate::{Agent, AgentError, Answer, RunContext, RunOutcome};

/// The cause of an invocation that no caller awaits: its span is linked to the one that was current
/// then instead of being below it.
#[derive(Debug)]
pub(crate) struct Unawaited(Mutex<Option<Span>>);

impl Unawaited {
    /// Returns the current span as a cause.
    pub(crate) fn now() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(Span::current()))))
    }

    /// Takes the cause, which only the first invocation gets: those below it are awaited.
    pub(crate) fn take(&self) -> Option<Span> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Returns the span of an invocation. Called where it is begun, because a background task is polled
/// elsewhere.
pub(crate) fn invoke_agent(agent: &Agent, cx: &RunContext) -> Span {
    let span = invocation(agent.name(), cx);
    provided(&span, agent.model().provider());
    span
}

/// Returns the span of an invocation without a provider.
pub(crate) fn invocation(name: &str, cx: &RunContext) -> Span {
    let cause = cx.cause().and_then(Unawaited::take);
    let parent = if cause.is_some() { None } else { Span::current().id() };
    let span = info_span!(
        parent: parent,
        "invoke_agent",
        otel.name = format_args!("invoke_agent {name}"),
        gen_ai.operation.name = "invoke_agent",
        gen_ai.provider.name = Empty,
        gen_ai.agent.name = name,
        gen_ai.agent.id = cx.agent_key().map_or_else(|| &**cx.agent(), |key| key.as_str()),
        gen_ai.conversation.id = cx.session_id().as_str(),
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    );
    cause.iter().for_each(|cause| _ = span.follows_from(cause));
    span
}

fn provided(span: &Span, provider: Option<&str>) {
    if let Some(provider) = provider {
        span.record("gen_ai.provider.name", provider);
    }
}

/// Records an error in the current span.
fn failed(how: &str) {
    let span = Span::current();
    span.record("error.type", how);
    span.record("otel.status_code", "ERROR");
}

/// Records the outcome of the current invocation.
pub(crate) fn invoked(outcome: &RunOutcome) {
    let (span, own) = (Span::current(), outcome.usage.own);
    span.record("gen_ai.usage.input_tokens", count(own.input_tokens));
    span.record("gen_ai.usage.output_tokens", count(own.output_tokens));
    if outcome.error.is_some() {
        failed(outcome.outcome.as_str());
    }
}

/// Converts a number: the conventions require integers, and exporters make text of unsigned ones.
fn count(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

/// Returns the span of a model call.
pub(crate) fn chat(model: &str, provider: Option<&str>) -> Span {
    let span = info_span!(
        "chat",
        otel.name = format_args!("chat {model}"),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = Empty,
        gen_ai.request.model = model,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    );
    provided(&span, provider);
    span
}

/// Records the end of the current model call.
pub(crate) fn chatted(answer: Result<&Answer, &AgentError>) {
    let span = Span::current();
    if span.is_disabled() {
        return;
    }
    match answer {
        Ok(Answer { stop, usage, .. }) => {
            span.record("gen_ai.response.finish_reasons", stop.to_string());
            if let Some(usage) = usage {
                span.record("gen_ai.usage.input_tokens", count(usage.input_tokens));
                span.record("gen_ai.usage.output_tokens", count(usage.output_tokens));
            }
        }
        Err(error) => failed(error.outcome().as_str()),
    }
}

/// Returns the span of a tool call.
pub(crate) fn execute_tool(call: &ToolCall) -> Span {
    info_span!(
        "execute_tool",
        otel.name = format_args!("execute_tool {}", call.name),
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.name.as_str(),
        gen_ai.tool.call.id = call.id.as_str(),
        gen_ai.tool.type = "function",
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// Records the end of the current tool call.
pub(crate) fn executed(state: ToolState) {
    if state != ToolState::Success && state != ToolState::Running {
        failed(state.as_str());
    }
}
