//! An event of ours in the form of AgentScope's `AgentEvent`. Both have the same kinds and names of
//! fields for the most part.

use std::time::Duration;

use mainstem_event::{AgentEvent, EventKind};
use mainstem_message::{ContentBlock, DataSource, Message, Role, ToolCall, ToolResult, Usage};
use serde_json::{Map, Value, json};

use crate::foreign::{addressed, public};

/// The member of a payload's metadata with what AgentScope's form has no field for.
pub const EXTRA: &str = "mainstem";

/// The beginning of the name of a `CUSTOM` event that is of a kind that AgentScope does not have;
/// the kind follows.
pub const PREFIX: &str = "mainstem.";

/// What is not a field of a kind in our JSON, or does not leave this process.
const OTHER_FIELDS: [&str; 10] = [
    "seq",
    "id",
    "sessionId",
    "runId",
    "createdAt",
    "source",
    "rootId",
    "replyId",
    "metadata",
    "specVersion",
];

/// Returns the payload of an event.
pub(super) fn of(event: &AgentEvent) -> Value {
    let Form { mut fields, mut extra } = Form::of(event);
    if let Some(source) = event.source() {
        extra.insert("source".to_owned(), json!(source));
        fields.insert("source".to_owned(), json!(source.path));
    }
    if let Some(reply) = event.reply_id() {
        fields.insert("replyId".to_owned(), json!(reply));
    }
    fields.insert("id".to_owned(), json!(format!("{}.{}", event.session_id(), event.seq)));
    fields.insert("createdAt".to_owned(), json!(event.at));
    if !extra.is_empty() {
        fields.insert("metadata".to_owned(), json!({ EXTRA: extra }));
    }
    Value::Object(fields)
}

/// A kind: the fields that AgentScope has, and the others.
struct Form {
    fields: Map<String, Value>,
    extra: Map<String, Value>,
}

impl Form {
    fn of(event: &AgentEvent) -> Self {
        use EventKind::*;
        let mut form = Self::own(event);
        match &event.kind {
            AgentStart { .. } => {
                let session = event.source().map_or_else(|| event.session_id(), |source| &source.session_id);
                form.set("sessionId", json!(session));
                form.move_out(&["input", "parentToolCallId"]);
            }
            AgentEnd { .. } => form.move_out(&["outcome", "error", "usage", "durationMs"]),
            AgentResult { result } => form.set("result", message(result)),
            ModelCallStart { .. } => form.move_out(&["modelName", "iteration", "purpose", "contextWindow"]),
            ModelCallEnd { usage, duration_ms, .. } => {
                form.move_out(&["usage", "stopReason", "durationMs"]);
                form.set("usage", json!(usage.map(|usage| chat_usage(&usage, *duration_ms))));
            }
            DataBlockStart { .. } => form.move_out(&["mediaType"]),
            ToolResultStart { .. } => form.move_out(&["input"]),
            ToolResultDataDelta { data, .. } => form.set("data", content(&addressed(data, event))),
            ToolResultEnd { .. } => form.move_out(&["durationMs"]),
            RequireUserConfirm { tool_calls, .. } => {
                form.move_out(&["confirmId", "rule"]);
                form.set("toolCalls", calls(tool_calls, "asking"));
            }
            UserConfirmResult { confirm_results, .. } => {
                form.move_out(&["confirmId"]);
                let result = |confirmed, call| json!({ "confirmed": confirmed, "toolCall": tool_use(call, "finished") });
                let results = confirm_results.iter().map(|one| result(one.confirmed, &one.tool_call));
                form.set("confirmResults", results.collect());
            }
            RequireExternalExecution { tool_calls, .. } => {
                form.set("toolCalls", calls(tool_calls, "submitted"))
            }
            ExternalExecutionResult { tool_results } => {
                form.set("toolResults", tool_results.iter().map(tool_result).collect());
            }
            AllToolsDenied { denied_tool_calls } => {
                form.set("deniedToolCalls", calls(denied_tool_calls, "finished"));
            }
            Custom { name, value } => return Self::custom(name, value.clone()),
            TextBlockStart { .. } | TextBlockDelta { .. } | TextBlockEnd { .. } => {}
            ThinkingBlockStart { .. } | ThinkingBlockDelta { .. } | ThinkingBlockEnd { .. } => {}
            DataBlockDelta { .. } | DataBlockEnd { .. } | ToolResultTextDelta { .. } => {}
            ToolCallStart { .. } | ToolCallDelta { .. } | ToolCallEnd { .. } => {}
            HintBlock { .. } | ExceedMaxIters { .. } => {}
            other => return Self::custom(&format!("{PREFIX}{}", other.name()), Value::Object(form.fields)),
        }
        form
    }

    /// The fields of a kind, and its type, in our JSON.
    fn own(event: &AgentEvent) -> Self {
        let fields = match public(event) {
            Value::Object(mut fields) => {
                fields.retain(|name, _| !OTHER_FIELDS.contains(&&**name));
                fields
            }
            _ => Map::new(),
        };
        Self { fields, extra: Map::new() }
    }

    /// A `CUSTOM` event, whose value is an object.
    fn custom(name: &str, value: Value) -> Self {
        let value = if value.is_object() { value } else { json!({ "value": value }) };
        let mut form = Self { fields: Map::new(), extra: Map::new() };
        form.set("type", "CUSTOM".into());
        form.set("name", name.into());
        form.set("value", value);
        form
    }

    fn set(&mut self, name: &str, value: Value) {
        self.fields.insert(name.to_owned(), value);
    }

    /// Moves fields that AgentScope does not have.
    fn move_out(&mut self, names: &[&str]) {
        for name in names {
            self.extra.extend(self.fields.remove_entry(*name));
        }
    }
}

fn chat_usage(usage: &Usage, duration_ms: u64) -> Value {
    json!({
        "inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens,
        "cachedTokens": usage.cache_read_tokens, "time": Duration::from_millis(duration_ms).as_secs_f64(),
    })
}

fn message(message: &Message) -> Value {
    let role = match message.role {
        Role::System => "SYSTEM",
        Role::User => "USER",
        Role::Assistant => "ASSISTANT",
        Role::Tool => "TOOL",
    };
    let blocks = message.content.iter().map(content).collect::<Vec<_>>();
    json!({ "id": message.id, "role": role, "content": blocks })
}

fn content(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text { text, .. } => json!({ "type": "text", "text": text }),
        ContentBlock::Thinking { thinking, .. } => json!({ "type": "thinking", "thinking": thinking }),
        ContentBlock::Data { media_type, source: DataSource::Url(url), .. } => {
            json!({ "type": "data", "source": { "type": "url", "url": url, "mime_type": media_type } })
        }
        ContentBlock::Data { media_type, source: DataSource::Base64(data), .. } => {
            json!({ "type": "data", "source": { "type": "base64", "media_type": media_type, "data": data } })
        }
        ContentBlock::ToolCall(call) => tool_use(call, "finished"),
        ContentBlock::ToolResult(result) => tool_result(result),
        other => json!({ "type": "text", "text": json!(other).to_string() }),
    }
}

fn calls(calls: &[ToolCall], state: &str) -> Value {
    calls.iter().map(|call| tool_use(call, state)).collect()
}

fn tool_use(call: &ToolCall, state: &str) -> Value {
    let input = call.parsed_arguments().ok().filter(Value::is_object).unwrap_or_else(|| json!({}));
    json!({
        "type": "tool_use", "id": call.id, "name": call.name, "input": input,
        "content": call.arguments, "state": state,
    })
}

fn tool_result(result: &ToolResult) -> Value {
    let output = result.content.iter().map(content).collect::<Vec<_>>();
    json!({
        "type": "tool_result", "id": result.tool_call_id, "name": result.name, "output": output,
        "state": result.state.as_str(),
    })
}
