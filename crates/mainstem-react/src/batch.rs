//! The tool calls of one turn: concurrent, each result as it finishes.

use std::sync::Arc;

use futures_util::{StreamExt, stream::FuturesUnordered};
use mainstem_event::EventKind;
use mainstem_message::{ContentBlock, Role, ToolCall, ToolState};
use mainstem_tool::{ToolError, ToolOutput};
use serde_json::Value;
use tokio::task::yield_now;
use tracing::Instrument;

use crate::{
    RunContext,
    agent::Parts,
    middleware::{NextTool, PendingCall},
    span,
};

/// The number of calls that are started before the started ones are polled again: so the first of a
/// thousand children streams while the last ones start.
const AT_ONCE: usize = 64;

/// Runs the calls; those of exclusive tools run one by one, in order.
///
/// On a cancel no further tool begins. The running ones can see it, and have the agent's grace.
pub(crate) async fn run(agent: &Parts, cx: &RunContext, calls: &[ToolCall]) {
    for group in groups(agent, calls) {
        if cx.is_cancelled() {
            return;
        }
        run_group(agent, cx, group).await;
    }
}

/// Returns `true` if the turn is complete and every result in it is a refusal.
pub(crate) fn is_denied(cx: &RunContext) -> bool {
    cx.with_transcript(|transcript| {
        let last = transcript.messages().last().filter(|message| message.role == Role::Tool);
        last.is_some_and(|message| message.tool_results().all(|result| result.state == ToolState::Denied))
    })
}

async fn run_group(agent: &Parts, cx: &RunContext, group: &[ToolCall]) {
    // One call needs no `FuturesUnordered`: a chain of single children is as cheap as it is deep.
    if let [call] = group {
        return run_one(agent, cx, call).await;
    }
    let mut running = FuturesUnordered::new();
    for calls in group.chunks(AT_ONCE) {
        running.extend(calls.iter().map(|call| run_one(agent, cx, call)));
        tokio::select! {
            biased;
            () = all_of(&mut running) => {}
            () = yield_now() => {}
        }
    }
    all_of(&mut running).await;
}

async fn all_of(running: &mut FuturesUnordered<impl Future<Output = ()>>) {
    while running.next().await.is_some() {}
}

/// Splits the calls into groups that may run concurrently, in order.
fn groups<'a>(agent: &Parts, calls: &'a [ToolCall]) -> Vec<&'a [ToolCall]> {
    let is_exclusive = |call: &ToolCall| agent.tools.get(&call.name).is_some_and(|tool| tool.is_exclusive());
    calls.chunk_by(|a, b| !is_exclusive(a) && !is_exclusive(b)).collect()
}

async fn run_one(agent: &Parts, cx: &RunContext, call: &ToolCall) {
    run_call(agent, cx, call).instrument(span::execute_tool(call)).await;
}

async fn run_call(agent: &Parts, cx: &RunContext, call: &ToolCall) {
    let cx = cx.for_call(call.id.clone());
    let started = cx.now();
    let result = execute(agent, &cx, call).await;
    let output = result.unwrap_or_else(|error| {
        let state = if cx.is_cancelled() { ToolState::Interrupted } else { ToolState::Error };
        ToolOutput::from(error.to_string()).with_state(state)
    });
    let (content, state) = cx.bounded(output).await.into_parts();
    let content = cx.with_stored_data(content).await;
    span::executed(state);
    let (id, name): (_, Arc<str>) = (call.id.clone(), call.name.as_str().into());
    if !cx.with_transcript(|transcript| transcript.has_started(&id)) {
        let input = call.parsed_arguments().unwrap_or(Value::Null);
        cx.emit(EventKind::tool_result_start(id.clone(), name.clone(), input));
    }
    for block in content {
        emit_block(&cx, block);
    }
    let duration_ms = cx.now().millis_since(started);
    cx.emit(EventKind::tool_result_end(id, name, state, duration_ms));
}

async fn execute(agent: &Parts, cx: &RunContext, call: &ToolCall) -> Result<ToolOutput, ToolError> {
    let arguments = call.parsed_arguments().map_err(|error| {
        let advice = match error.is_eof() {
            true => "if your answer reached its length limit, write less in one call; else send them again",
            false => "send them again",
        };
        ToolError::new(format!("the arguments of {} are not JSON: {error}; {advice}", call.name))
    })?;
    let pending = PendingCall { id: call.id.clone(), name: call.name.as_str().into(), arguments };
    NextTool { agent, rest: &agent.middleware }.run(cx, pending).await
}

fn emit_block(cx: &RunContext, block: ContentBlock) {
    let Some(tool_call_id) = cx.call_id().cloned() else { return };
    match block {
        ContentBlock::Text { text, .. } if text.is_empty() => {}
        ContentBlock::Text { text: delta, opaque } if opaque.is_empty() => {
            cx.emit(EventKind::ToolResultTextDelta { tool_call_id, delta });
        }
        data => _ = cx.emit(EventKind::ToolResultDataDelta { tool_call_id, data: Box::new(data) }),
    }
}
