//! The Agent Protocol of AgentScope: tasks over HTTP, and their events.
//!
//! The types of the wire are for both sides: a server answers with them, a client reads them. An
//! event of ours is one frame, in whose [`payload`](TaskEvent::payload) it is in the form of
//! AgentScope; what that form has no field for is under [`EXTRA`] in the payload's metadata, or,
//! for a whole kind, a `CUSTOM` event whose name begins with [`PREFIX`].

mod payload;
mod wire;

use bytes::Bytes;
use mainstem_event::{AgentEvent, EventKind, Outcome};
use mainstem_message::{ToolCall, ToolCallId};
use mainstem_sse::Frame;

pub use self::{
    payload::{EXTRA, PREFIX},
    wire::{
        Context, DenyRule, Detail, EventType, Finding, PendingConfirm, Resume, Snapshot, Status, Submit,
        TaskEvent, Verdict,
    },
};
use crate::Encoder;

/// The events of one task, from its first one or from behind a number.
///
/// Events have the numbers of the session: from 1 on in a session of the task's own. A detail
/// leaves some out, and their numbers with them. A task ends with a `STATUS` event, or with
/// `RUN_ERROR` if it failed.
#[derive(Clone, Debug)]
pub struct AgentProtocol {
    task: String,
    agent: Option<String>,
    detail: Detail,
    /// The number of the last event that the reader has.
    after: u64,
}

/// The attribute of a run with what its events need of the submission: its agent, and its detail.
pub const SUBMISSION: &str = "agentprotocol.context";

impl AgentProtocol {
    /// Creates the encoder of a task, which has the detail `status` unless its first event has
    /// [another](Self::learn).
    pub fn new(task: impl Into<String>) -> Self {
        Self { task: task.into(), agent: None, detail: Detail::default(), after: 0 }
    }

    /// Sets the detail.
    #[must_use]
    pub fn with_detail(mut self, detail: Detail) -> Self {
        self.detail = detail;
        self
    }

    /// Leaves out events up to this number: a reader has them.
    #[must_use]
    pub fn with_from_seq(mut self, after: u64) -> Self {
        self.after = after;
        self
    }

    /// Reads the agent and the detail that were submitted from the first event of the run; another
    /// event changes nothing.
    pub fn learn(&mut self, event: &AgentEvent) {
        let EventKind::AgentStart { settings: Some(settings), .. } = &event.kind else { return };
        let submission = settings.attributes.get(SUBMISSION).filter(|_| event.is_root());
        if let Some(submission) = submission {
            self.detail = Detail::parse(submission["detail"].as_str());
            self.agent = submission["agent_id"].as_str().map(str::to_owned);
        }
    }

    /// Returns the events for one of ours, without those that the detail or the reader's position
    /// leaves out.
    pub fn events(&mut self, event: &AgentEvent) -> Vec<TaskEvent> {
        self.learn(event);
        let all = (event.seq..).zip(translated(event)).map(|(seq, one)| TaskEvent {
            seq,
            task_id: Some(self.task.clone()),
            agent_id: self.agent.clone(),
            timestamp: Some(event.at.to_string()),
            ..one
        });
        all.filter(|one| one.seq > self.after && self.detail.includes(one.kind)).collect()
    }
}

impl Encoder for AgentProtocol {
    fn media_type(&self) -> &'static str {
        "text/event-stream"
    }

    fn event(&mut self, event: &AgentEvent) -> Bytes {
        let frames: Vec<_> = self.events(event).iter().map(frame).collect();
        frames.concat().into()
    }

    fn keep_alive(&mut self) -> Bytes {
        Frame::comment("still here").encode()
    }

    fn fail(&mut self, problem: &str) -> Bytes {
        // Without a number, because it is not an event of the task: a reader reconnects.
        Frame::comment(problem).encode()
    }
}

fn frame(event: &TaskEvent) -> Bytes {
    let (id, json) = (event.seq.to_string(), serde_json::to_string(event).unwrap_or_default());
    Frame::data(&json).with_event(event.kind.as_str()).with_id(&id).encode()
}

/// Returns the event in the protocol, and behind the last one of a task its status.
fn translated(event: &AgentEvent) -> Vec<TaskEvent> {
    if event.is_run_end() || event.is_queued_run_cancel() {
        return ended(event);
    }
    vec![typed(event).with_payload(event)]
}

/// The typed fields. An event of an agent below has none, because a client that reads only them
/// would take it for one of the agent that it asked; a request for approval is the exception, as
/// any client has to answer it.
fn typed(event: &AgentEvent) -> TaskEvent {
    use EventKind::*;
    let call = |kind, id: &ToolCallId, name: &str| TaskEvent {
        tool_call_id: Some(id.as_str().to_owned()),
        tool_name: Some(name.to_owned()),
        ..TaskEvent::of(kind)
    };
    let text = |kind, delta: &str| TaskEvent { text: Some(delta.to_owned()), ..TaskEvent::of(kind) };
    match &event.kind {
        RequireUserConfirm { tool_calls, .. } => TaskEvent {
            pending_confirms: Some(tool_calls.iter().map(pending).collect()),
            status: Some(Status::AwaitingConfirm.as_str().to_owned()),
            ..TaskEvent::of(EventType::RequireConfirm)
        },
        _ if !event.is_root() => TaskEvent::of(EventType::AgentEvent),
        AgentStart { .. } => TaskEvent::of(EventType::RunStarted),
        TextBlockDelta { delta, .. } => text(EventType::TextDelta, delta),
        ThinkingBlockDelta { delta, .. } => text(EventType::ThinkingDelta, delta),
        ToolCallStart { tool_call_id, tool_call_name } => {
            call(EventType::ToolCallStart, tool_call_id, tool_call_name)
        }
        ToolCallEnd { tool_call_id, tool_call_name, .. } => {
            call(EventType::ToolCallEnd, tool_call_id, tool_call_name)
        }
        ToolResultEnd { tool_call_id, tool_call_name, state, .. } => TaskEvent {
            status: Some(state.as_str().to_uppercase()),
            ..call(EventType::ToolResult, tool_call_id, tool_call_name)
        },
        _ => TaskEvent::of(EventType::AgentEvent),
    }
}

/// A pending call, as a status and an event show it.
pub fn pending(call: &ToolCall) -> PendingConfirm {
    PendingConfirm {
        tool_call_id: call.id.as_str().to_owned(),
        tool_name: Some(call.name.clone()),
        tool_input_json: Some(call.arguments.clone()),
    }
}

/// The end of a task: `RUN_FINISHED` and its status if it succeeded, else one event.
fn ended(event: &AgentEvent) -> Vec<TaskEvent> {
    let (outcome, error) = match &event.kind {
        EventKind::AgentEnd { outcome, error, .. } => (*outcome, error.as_ref()),
        EventKind::RunCancelled { error, .. } => (Outcome::Cancelled, Some(error)),
        _ => (Outcome::Error, None),
    };
    let status = Status::of(outcome);
    let error = error.map(|failure| failure.message.clone()).or_else(|| status.default_error(outcome));
    let kind = if status == Status::Error { EventType::RunError } else { EventType::Status };
    let last = TaskEvent { status: Some(status.as_str().to_owned()), error, ..TaskEvent::of(kind) };
    match status {
        Status::Success => vec![TaskEvent::of(EventType::RunFinished).with_payload(event), last],
        _ => vec![last.with_payload(event)],
    }
}

impl TaskEvent {
    fn with_payload(mut self, event: &AgentEvent) -> Self {
        let payload = payload::of(event);
        self.event_type = payload["type"].as_str().map(str::to_owned);
        self.payload = Some(payload.to_string());
        self
    }
}

#[cfg(test)]
mod tests;
