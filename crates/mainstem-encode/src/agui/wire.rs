//! The events of AG-UI 1.0, as they are written.

use bytes::BytesMut;
use mainstem_event::{AgentEvent, Timestamp};
use mainstem_message::Usage;
use mainstem_sse::Frame;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::foreign;

/// The version of the protocol.
pub const VERSION: &str = "1.0";

/// The key of our own values in `metadata`, and the prefix of the names of custom events.
pub(super) const OURS: &str = "mainstem";

/// An event without what all events have.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(super) enum Body<'a> {
    RunStarted {
        thread_id: &'a str,
        run_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        protocol_version: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_run_id: Option<&'a str>,
    },
    RunFinished {
        thread_id: &'a str,
        run_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a str>,
        outcome: RunOutcome<'a>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    },
    RunError {
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    },
    StepStarted {
        step_name: &'a str,
    },
    StepFinished {
        step_name: &'a str,
    },
    TextMessageStart {
        message_id: &'a str,
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
    TextMessageContent {
        message_id: &'a str,
        delta: &'a str,
    },
    TextMessageEnd {
        message_id: &'a str,
    },
    ReasoningStart {
        message_id: &'a str,
    },
    ReasoningMessageStart {
        message_id: &'a str,
        role: &'static str,
    },
    ReasoningMessageContent {
        message_id: &'a str,
        delta: &'a str,
    },
    ReasoningMessageEnd {
        message_id: &'a str,
    },
    ReasoningEnd {
        message_id: &'a str,
    },
    ToolCallStart {
        tool_call_id: &'a str,
        tool_call_name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<&'a str>,
    },
    ToolCallArgs {
        tool_call_id: &'a str,
        delta: &'a str,
    },
    ToolCallEnd {
        tool_call_id: &'a str,
    },
    ToolCallResult {
        message_id: &'a str,
        tool_call_id: &'a str,
        content: Value,
        role: &'static str,
    },
    StateSnapshot {
        snapshot: &'a Value,
    },
    StateDelta {
        delta: &'a [Patch],
    },
    MessagesSnapshot {
        messages: &'a [Value],
    },
    Custom {
        name: &'a str,
        value: Value,
    },
    /// The id is the tag of the envelope, as in the next two.
    SubagentStarted {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<&'a str>,
    },
    SubagentFinished {
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a str>,
        outcome: SubagentOutcome<'a>,
    },
    SubagentError {
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<&'a str>,
    },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum RunOutcome<'a> {
    Success {
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        pending_tool_call_ids: &'a [&'a str],
    },
    Interrupt {
        interrupts: &'a [Interrupt<'a>],
    },
    Cancelled,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum SubagentOutcome<'a> {
    Success,
    Suspended {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        interrupt_ids: Vec<&'a str>,
    },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Interrupt<'a> {
    pub(super) id: &'a str,
    pub(super) reason: &'static str,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subagent_run_id: Option<&'a str>,
    pub(super) response_schema: Value,
    pub(super) metadata: Value,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenUsage {
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: u64,
    reasoning_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
}

/// The largest number that a reader in JavaScript has exactly, and the schema allows.
const MAX_SAFE: u64 = (1 << 53) - 1;

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        let safe = |tokens: u64| tokens.min(MAX_SAFE);
        Self {
            input_tokens: safe(usage.input_tokens),
            output_tokens: safe(usage.output_tokens),
            total_tokens: safe(usage.total_tokens()),
            reasoning_tokens: safe(usage.reasoning_tokens),
            cached_input_tokens: safe(usage.cache_read_tokens),
            cache_write_input_tokens: safe(usage.cache_write_tokens),
        }
    }
}

/// An operation of a JSON Patch ([RFC 6902](https://www.rfc-editor.org/rfc/rfc6902)).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Patch {
    op: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
}

impl Patch {
    /// Sets a member, whether or not it exists.
    pub(super) fn add(path: String, value: Value) -> Self {
        Self { op: "add", path, value: Some(value) }
    }
}

/// What all events of AG-UI have, beside their body.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(flatten)]
    body: Body<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent_run_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Value>,
}

/// Frames to be sent; while it is muted, what is written is dropped.
#[derive(Debug, Default)]
pub(super) struct Out {
    frames: BytesMut,
    pub(super) is_muted: bool,
    at: Option<Timestamp>,
}

impl Out {
    /// Sets the time of the events that are written next.
    pub(super) fn at(&mut self, at: Timestamp) {
        self.at = Some(at);
    }

    /// Writes an event of a subagent, or else of the run.
    pub(super) fn write(&mut self, subagent: Option<&str>, body: Body<'_>) {
        self.envelope(subagent, None, body);
    }

    /// Writes an event with metadata of ours.
    pub(super) fn write_with(&mut self, subagent: Option<&str>, metadata: Value, body: Body<'_>) {
        self.envelope(subagent, Some(json!({ OURS: metadata })), body);
    }

    fn envelope(&mut self, subagent_run_id: Option<&str>, metadata: Option<Value>, body: Body<'_>) {
        if self.is_muted {
            return;
        }
        let timestamp = self.at.map(|at| (at.as_micros() / 1000).min(MAX_SAFE));
        let event = Envelope { body, timestamp, subagent_run_id, metadata };
        // No value of an event has keys that are not texts, so this succeeds.
        let json = serde_json::to_string(&event).unwrap_or_default();
        self.frames.extend_from_slice(&Frame::data(&json).encode());
    }

    /// Takes the frames.
    pub(super) fn take(&mut self) -> bytes::Bytes {
        std::mem::take(&mut self.frames).freeze()
    }
}

/// Returns who made an event, and its number, for `metadata`.
pub(super) fn origin(event: &AgentEvent) -> Value {
    let mut origin = Map::from_iter([("seq".to_owned(), event.seq.into())]);
    if let Some(source) = event.source() {
        origin.insert("source".to_owned(), json!(source));
    }
    Value::Object(origin)
}

/// Returns an event as a custom one: the name of its kind in small letters, and its fields.
pub(super) fn custom(event: &AgentEvent) -> (String, Value) {
    let mut value = foreign::public(event);
    if let Some(fields) = value.as_object_mut() {
        let envelope = [
            "type",
            "seq",
            "id",
            "sessionId",
            "runId",
            "createdAt",
            "source",
            "rootId",
            "replyId",
            "metadata",
        ];
        fields.retain(|name, _| !envelope.contains(&name.as_str()));
    }
    (format!("{OURS}.{}", event.kind.name().to_ascii_lowercase()), value)
}
