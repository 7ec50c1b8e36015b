//! Spans for `tracing`, named and described as OpenTelemetry's [conventions] for generative AI say. The only thing here that is ambient: a
//! span's parent is the one that is current when it is made, so a child's invocation lies below its parent's tool call.
//!
//! [conventions]: https://github.com/open-telemetry/semantic-conventions-genai

use mainstem_message::{ToolCall, ToolState};
use mainstem_tool::RunContext;
use tracing::{Span, field::Empty, info_span};

use crate::{Agent, AgentError, Answer, RunOutcome};

/// One invocation. Made where it is begun, for a background task is polled elsewhere.
pub(crate) fn invoke_agent(agent: &Agent, cx: &RunContext) -> Span {
    info_span!(
        "invoke_agent",
        otel.name = format_args!("invoke_agent {}", agent.name()),
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = &**agent.name(),
        gen_ai.agent.id = cx.agent_key().map_or_else(|| &**agent.id(), |key| key.as_str()),
        gen_ai.conversation.id = cx.session_id().as_str(),
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.type = Empty,
    )
}

/// How the current invocation ended.
pub(crate) fn invoked(outcome: &RunOutcome) {
    let (span, own) = (Span::current(), outcome.usage.own);
    span.record("gen_ai.usage.input_tokens", own.input_tokens);
    span.record("gen_ai.usage.output_tokens", own.output_tokens);
    if outcome.error.is_some() {
        span.record("error.type", outcome.outcome.as_str());
    }
}

/// One model call.
pub(crate) fn chat(model: &str) -> Span {
    info_span!(
        "chat",
        otel.name = format_args!("chat {model}"),
        gen_ai.operation.name = "chat",
        gen_ai.request.model = model,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.type = Empty,
    )
}

/// How the current model call ended.
pub(crate) fn chatted(answer: Result<&Answer, &AgentError>) {
    let span = Span::current();
    match answer {
        Ok(Answer { stop, usage, .. }) => {
            span.record("gen_ai.response.finish_reasons", stop.to_string());
            if let Some(usage) = usage {
                span.record("gen_ai.usage.input_tokens", usage.input_tokens);
                span.record("gen_ai.usage.output_tokens", usage.output_tokens);
            }
        }
        Err(error) => _ = span.record("error.type", error.outcome().as_str()),
    }
}

/// One tool call.
pub(crate) fn execute_tool(call: &ToolCall) -> Span {
    info_span!(
        "execute_tool",
        otel.name = format_args!("execute_tool {}", call.name),
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.name.as_str(),
        gen_ai.tool.call.id = call.id.as_str(),
        gen_ai.tool.type = "function",
        error.type = Empty,
    )
}

/// How the current tool call ended.
pub(crate) fn executed(state: ToolState) {
    if state != ToolState::Success && state != ToolState::Running {
        Span::current().record("error.type", state.as_str());
    }
}
