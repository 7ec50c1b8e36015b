//! Helpers for the tests of this crate: a clock that stands still, agents named by their path,
//! events in short.

use std::sync::Arc;

use mainstem_message::{
    AgentKey, ContentBlock, Message, Opaque, ReplyId, Role, SessionId, StopReason, ToolState, Usage,
};
use serde_json::Value;

use crate::{
    AgentEvent, Clock, EventKind, EventSink, EventSource, LogOptions, Origin, Outcome, SessionLog, Timestamp,
};

pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_795_000_000_000_000);

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        NOW
    }
}

pub(crate) fn log(ring: usize, buffer: usize) -> Arc<SessionLog> {
    SessionLog::with(
        "s".parse().unwrap(),
        Arc::new(Still),
        LogOptions { ring, buffer, ..LogOptions::default() },
    )
}

/// Returns the child at a path below the root: `a`, or `a/b` for its child `b`.
pub(crate) fn source(path: &str) -> EventSource {
    let (parent, id) = path.rsplit_once('/').unwrap_or(("", path));
    EventSource {
        agent_key: AgentKey::from_lossy(named("agent:", path)),
        agent_id: id.into(),
        agent_name: None,
        label: None,
        title: None,
        session_id: SessionId::from_lossy(named("sub-", path)),
        parent_session_id: if parent.is_empty() {
            "s".parse().unwrap()
        } else {
            SessionId::from_lossy(named("sub-", parent))
        },
        depth: path.split('/').count() as u16,
        path: format!("s/{path}").into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: Some(format!("call-{id}").into()),
        stream_id: 1,
    }
}

fn reply(path: &str) -> ReplyId {
    ReplyId::from_lossy(named("reply-", path))
}

/// Returns the text of an id that names a path.
fn named(prefix: &str, path: &str) -> String {
    [prefix, &path.replace('/', ".")].concat()
}

/// Returns the origin of an agent's first invocation; the empty path is the root.
pub(crate) fn origin(path: &str) -> Origin {
    let source = (!path.is_empty()).then(|| Arc::new(source(path)));
    Origin {
        source,
        reply_id: Some(reply(path)),
        ..Origin::session("s".parse().unwrap(), Some("run-1".parse().unwrap()))
    }
}

pub(crate) fn root(log: &Arc<SessionLog>) -> EventSink {
    EventSink::root(log.clone(), origin(""))
}

pub(crate) fn child(parent: &EventSink, path: &str) -> EventSink {
    parent.child(source(path), reply(path))
}

pub(crate) fn event(seq: u64, path: &str, kind: EventKind) -> AgentEvent {
    AgentEvent::new(seq, NOW, Arc::new(origin(path)), kind)
}

/// Returns events, numbered from 1.
pub(crate) fn events<'a>(list: impl IntoIterator<Item = (&'a str, EventKind)>) -> Vec<AgentEvent> {
    (1..).zip(list).map(|(seq, (path, kind))| event(seq, path, kind)).collect()
}

pub(crate) fn gap(from_seq: u64, to_seq: u64) -> AgentEvent {
    let kind = EventKind::Gap {
        from_seq,
        to_seq,
        missed: to_seq - from_seq + 1,
        per_agent: [].into(),
        reason: None,
    };
    AgentEvent::new(to_seq, NOW, Arc::new(Origin::session("s".parse().unwrap(), None)), kind)
}

pub(crate) fn start(input: &str) -> EventKind {
    let input = vec![Arc::new(Message::user(input))];
    EventKind::AgentStart {
        name: "agent".into(),
        role: Role::Assistant,
        input,
        parent_tool_call_id: None,
        settings: None,
        spec_version: None,
        spec: None,
    }
}

pub(crate) fn result(text: &str) -> EventKind {
    EventKind::AgentResult { result: Arc::new(Message::assistant(text)) }
}

pub(crate) fn end(outcome: Outcome) -> EventKind {
    EventKind::AgentEnd { outcome, error: None, usage: Box::default(), duration_ms: 0 }
}

pub(crate) fn ask() -> EventKind {
    EventKind::model_call_start("m", 1)
}

pub(crate) fn answered() -> EventKind {
    let usage = Some(Usage::new(10, 2));
    EventKind::model_call_end(StopReason::Stop, 0).with_usage(usage)
}

pub(crate) fn text_start(id: &str) -> EventKind {
    EventKind::TextBlockStart { block_id: id.parse().unwrap() }
}

pub(crate) fn text(id: &str, delta: &str) -> EventKind {
    EventKind::TextBlockDelta { block_id: id.parse().unwrap(), delta: delta.into() }
}

pub(crate) fn text_end(id: &str) -> EventKind {
    EventKind::TextBlockEnd { block_id: id.parse().unwrap(), opaque: Opaque::new(), discarded: false }
}

pub(crate) fn thinking_start(id: &str) -> EventKind {
    EventKind::ThinkingBlockStart { block_id: id.parse().unwrap() }
}

pub(crate) fn thinking(id: &str, delta: &str) -> EventKind {
    EventKind::ThinkingBlockDelta { block_id: id.parse().unwrap(), delta: delta.into() }
}

pub(crate) fn thinking_end(id: &str, opaque: Opaque) -> EventKind {
    EventKind::ThinkingBlockEnd { block_id: id.parse().unwrap(), opaque, discarded: false }
}

pub(crate) fn call(id: &str) -> EventKind {
    EventKind::ToolCallStart { tool_call_id: id.into(), tool_call_name: "search".into() }
}

pub(crate) fn arguments(id: &str, delta: &str) -> EventKind {
    EventKind::ToolCallDelta { tool_call_id: id.into(), delta: delta.into() }
}

pub(crate) fn called(id: &str) -> EventKind {
    let opaque = Opaque::new();
    EventKind::ToolCallEnd {
        tool_call_id: id.into(),
        tool_call_name: "search".into(),
        opaque,
        discarded: false,
    }
}

pub(crate) fn tool_start(id: &str) -> EventKind {
    let input = Value::Null;
    EventKind::ToolResultStart { tool_call_id: id.into(), tool_call_name: "search".into(), input }
}

pub(crate) fn output(id: &str, delta: &str) -> EventKind {
    EventKind::ToolResultTextDelta { tool_call_id: id.into(), delta: delta.into() }
}

pub(crate) fn output_data(id: &str, data: ContentBlock) -> EventKind {
    EventKind::ToolResultDataDelta { tool_call_id: id.into(), data: Box::new(data) }
}

pub(crate) fn tool_end(id: &str, state: ToolState) -> EventKind {
    EventKind::ToolResultEnd {
        tool_call_id: id.into(),
        tool_call_name: "search".into(),
        state,
        duration_ms: 0,
    }
}

pub(crate) fn hint(hint: &str) -> EventKind {
    EventKind::HintBlock { block_id: "h".parse().unwrap(), hint_source: "test".into(), hint: hint.into() }
}
