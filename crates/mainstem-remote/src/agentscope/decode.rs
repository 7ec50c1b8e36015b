//! What one event of a task says: its payload if that can be read, else its typed fields. Pure.

use std::sync::Arc;

use mainstem_encode::agent_protocol::{EXTRA, EventType, PREFIX, PendingConfirm, TaskEvent};
use mainstem_event::{AgentEvent, EventKind, EventSource, Outcome};
use mainstem_message::{
    ContentBlock, DataSource, Failure, Message, Opaque, ToolCall, ToolCallId, ToolState, Usage,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The beginning of the name of a `CUSTOM` event of a kind that this program does not have.
const FOREIGN: &str = "agentscope.";

/// An event of the task: whose, and what.
#[derive(Debug, PartialEq)]
pub(super) struct Decoded {
    pub(super) producer: Producer,
    pub(super) statement: Statement,
}

/// The agent that an event is of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Producer {
    /// The one that was asked.
    Asked,
    /// One below it, of a server that says where.
    Below(Arc<EventSource>),
    /// One below it, of which only this is known.
    Named {
        /// What its events have in common.
        key: String,
        /// `<session>/<agent>`.
        path: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Statement {
    Start {
        name: String,
        input: Vec<Arc<Message>>,
    },
    End {
        outcome: Option<Outcome>,
        error: Option<Failure>,
    },
    /// The whole answer.
    Answer(String),
    ModelStart(Option<String>),
    ModelEnd(Option<Usage>),
    /// What model calls have used whose ends were not told.
    Used(Usage),
    Text(String),
    Thinking(String),
    DataStart(String),
    Data(String),
    EndBlock,
    Call {
        id: ToolCallId,
        name: String,
    },
    Arguments {
        id: ToolCallId,
        delta: String,
    },
    EndCall(ToolCallId),
    BeginResult {
        id: ToolCallId,
        name: String,
        input: Option<Value>,
    },
    Result {
        id: ToolCallId,
        delta: String,
    },
    ResultData {
        id: ToolCallId,
        data: ContentBlock,
    },
    EndResult {
        id: ToolCallId,
        name: String,
        state: ToolState,
    },
    Ask(Vec<ToolCall>),
    /// Calls that the caller runs.
    Execute(Vec<ToolCall>),
    /// Calls that were allowed or denied.
    Answered(Vec<(ToolCallId, bool)>),
    Other(Box<EventKind>),
    Nothing,
}

/// Returns what an event says.
pub(super) fn decode(event: &TaskEvent) -> Decoded {
    let payload = event.payload.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let payload = payload.as_ref().and_then(Value::as_object).map(Payload);
    let of_payload = payload.as_ref().and_then(|payload| Some((payload.producer(), payload.statement()?)));
    match of_payload {
        Some((producer, statement)) => Decoded { producer, statement },
        None => Decoded { producer: Producer::Asked, statement: typed(event) },
    }
}

/// What the typed fields say, which are the agent's that was asked.
fn typed(event: &TaskEvent) -> Statement {
    let text = || event.text.clone().unwrap_or_default();
    let id = || ToolCallId::new(event.tool_call_id.clone().unwrap_or_default());
    let name = || event.tool_name.clone().unwrap_or_default();
    match event.kind {
        EventType::RunStarted => {
            Statement::Start { name: event.agent_id.clone().unwrap_or_default(), input: Vec::new() }
        }
        EventType::RunFinished => Statement::End { outcome: None, error: None },
        EventType::TextDelta => Statement::Text(text()),
        EventType::ThinkingDelta => Statement::Thinking(text()),
        EventType::ToolCallStart => Statement::Call { id: id(), name: name() },
        EventType::ToolCallEnd => Statement::EndCall(id()),
        EventType::ToolResult => {
            Statement::EndResult { id: id(), name: name(), state: state(event.status.as_deref()) }
        }
        EventType::RequireConfirm => Statement::Ask(calls(event.pending_confirms.as_deref())),
        EventType::RunError | EventType::Status | EventType::AgentEvent | EventType::Unknown => {
            Statement::Nothing
        }
    }
}

/// Returns the calls that wait for an approval.
pub(super) fn calls(pending: Option<&[PendingConfirm]>) -> Vec<ToolCall> {
    let call = |one: &PendingConfirm| {
        let arguments = one.tool_input_json.clone().unwrap_or_else(|| "{}".to_owned());
        ToolCall::new(one.tool_call_id.as_str(), one.tool_name.clone().unwrap_or_default(), arguments)
    };
    pending.unwrap_or_default().iter().map(call).collect()
}

/// Returns the state of a result that this word names, in either case.
pub(super) fn state(word: Option<&str>) -> ToolState {
    match word.unwrap_or_default().to_ascii_lowercase().as_str() {
        "error" => ToolState::Error,
        "interrupted" => ToolState::Interrupted,
        "denied" => ToolState::Denied,
        "running" => ToolState::Running,
        _ => ToolState::Success,
    }
}

/// An event in the form of AgentScope.
struct Payload<'a>(&'a Map<String, Value>);

impl Payload<'_> {
    fn text(&self, name: &str) -> String {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// Returns a member of what our servers add.
    fn extra<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let extra = self.0.get("metadata")?.get(EXTRA)?.get(name)?;
        serde_json::from_value(extra.clone()).ok()
    }

    fn producer(&self) -> Producer {
        if let Some(source) = self.extra("source") {
            return Producer::Below(Arc::new(source));
        }
        let path = self.text("source");
        if path.trim().is_empty() {
            return Producer::Asked;
        }
        // Newer servers tell instances of one agent apart.
        let instance = self.0.get("metadata").and_then(|metadata| metadata.get("agentInstanceId"));
        let key = instance.and_then(Value::as_str).unwrap_or(&path).to_owned();
        Producer::Named { key, path }
    }

    /// Returns what it says; `None` if it is not an event of AgentScope.
    fn statement(&self) -> Option<Statement> {
        let kind = self.0.get("type")?.as_str()?;
        let (id, name) = (|| ToolCallId::new(self.text("toolCallId")), || self.text("toolCallName"));
        Some(match kind {
            "AGENT_START" => {
                Statement::Start { name: self.text("name"), input: self.extra("input").unwrap_or_default() }
            }
            "AGENT_END" => Statement::End { outcome: self.extra("outcome"), error: self.extra("error") },
            "AGENT_RESULT" => Statement::Answer(texts(self.0.get("result").unwrap_or(&Value::Null))),
            "MODEL_CALL_START" => Statement::ModelStart(self.extra("modelName")),
            "MODEL_CALL_END" => Statement::ModelEnd(self.usage()),
            "TEXT_BLOCK_START" | "THINKING_BLOCK_START" => Statement::Nothing,
            "TEXT_BLOCK_DELTA" => Statement::Text(self.text("delta")),
            "THINKING_BLOCK_DELTA" => Statement::Thinking(self.text("delta")),
            "DATA_BLOCK_START" => {
                let media_type = self.extra("mediaType").unwrap_or_else(|| self.text("mediaType"));
                Statement::DataStart(media_type)
            }
            "DATA_BLOCK_DELTA" => Statement::Data(self.text("delta")),
            "TEXT_BLOCK_END" | "THINKING_BLOCK_END" | "DATA_BLOCK_END" => Statement::EndBlock,
            "TOOL_CALL_START" => Statement::Call { id: id(), name: name() },
            "TOOL_CALL_DELTA" => Statement::Arguments { id: id(), delta: self.text("delta") },
            "TOOL_CALL_END" => Statement::EndCall(id()),
            "TOOL_RESULT_START" => {
                Statement::BeginResult { id: id(), name: name(), input: self.extra("input") }
            }
            "TOOL_RESULT_TEXT_DELTA" => Statement::Result { id: id(), delta: self.text("delta") },
            "TOOL_RESULT_DATA_DELTA" => match self.0.get("data").and_then(content) {
                Some(data) => Statement::ResultData { id: id(), data },
                None => Statement::Other(Box::new(self.foreign(kind))),
            },
            "TOOL_RESULT_END" => {
                Statement::EndResult { id: id(), name: name(), state: state(Some(&self.text("state"))) }
            }
            "REQUIRE_USER_CONFIRM" => Statement::Ask(self.list("toolCalls").iter().map(tool_call).collect()),
            "USER_CONFIRM_RESULT" => {
                let answer = |one: &Value| (tool_call(&one["toolCall"]).id, one["confirmed"] == true);
                Statement::Answered(self.list("confirmResults").iter().map(answer).collect())
            }
            "HINT_BLOCK" | "EXCEED_MAX_ITERS" => Statement::Other(Box::new(self.own(kind, self.0)?)),
            "CUSTOM" => Statement::Other(Box::new(self.custom())),
            // Without the kind of an event of AgentScope, the typed fields are read.
            _ if kind.is_empty() => return None,
            kind => Statement::Other(Box::new(self.foreign(kind))),
        })
    }

    fn list(&self, name: &str) -> &[Value] {
        self.0.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn usage(&self) -> Option<Usage> {
        self.extra("usage").or_else(|| {
            let usage = self.0.get("usage")?;
            let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
            let mut all = Usage::new(count("inputTokens"), count("outputTokens"));
            all.cache_read_tokens = count("cachedTokens");
            usage.is_object().then_some(all)
        })
    }

    /// Returns an event of ours whose fields are here.
    fn own(&self, kind: &str, fields: &Map<String, Value>) -> Option<EventKind> {
        let mut event = fields.clone();
        event.retain(|name, _| !matches!(&**name, "source" | "replyId" | "metadata" | "id"));
        let envelope =
            json!({ "type": kind, "seq": 1, "sessionId": "s", "createdAt": "1970-01-01T00:00:00Z" });
        event.extend(envelope.as_object()?.clone());
        let event: AgentEvent = serde_json::from_value(Value::Object(event)).ok()?;
        Some(event.kind.clone())
    }

    /// Returns an event of an application, or the one of ours that was sent as one.
    fn custom(&self) -> EventKind {
        let (name, value) = (self.text("name"), self.0.get("value").cloned().unwrap_or_default());
        let own = name.strip_prefix(PREFIX).and_then(|kind| self.own(kind, value.as_object()?));
        own.unwrap_or(EventKind::Custom { name, value })
    }

    /// Returns an event of a kind of AgentScope's that is not one of ours.
    fn foreign(&self, kind: &str) -> EventKind {
        EventKind::Custom { name: format!("{FOREIGN}{kind}"), value: Value::Object(self.0.clone()) }
    }
}

/// Returns the texts of a message, as AgentScope joins them.
fn texts(message: &Value) -> String {
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    let texts =
        blocks.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

fn tool_call(block: &Value) -> ToolCall {
    let text = |name: &str| block[name].as_str().unwrap_or_default();
    let raw = Some(text("content")).filter(|text| !text.is_empty()).map(str::to_owned);
    let arguments = raw.unwrap_or_else(|| match &block["input"] {
        Value::Null => "{}".to_owned(),
        input => input.to_string(),
    });
    ToolCall::new(text("id"), text("name"), arguments)
}

/// Returns a part of a result: text or data.
fn content(block: &Value) -> Option<ContentBlock> {
    if let Some(text) = block["text"].as_str() {
        return Some(ContentBlock::text(text));
    }
    let source = &block["source"];
    let media_type = ["media_type", "mime_type", "mediaType"].iter().find_map(|name| source[*name].as_str());
    let source = match (source["data"].as_str(), source["url"].as_str()) {
        (Some(data), _) => DataSource::Base64(data.to_owned()),
        (None, Some(url)) => DataSource::Url(url.to_owned()),
        (None, None) => return None,
    };
    let media_type = media_type.unwrap_or("application/octet-stream").to_owned();
    Some(ContentBlock::Data { media_type, source, opaque: Opaque::new() })
}
