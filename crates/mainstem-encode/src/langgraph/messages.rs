//! Messages as LangChain writes them in JSON.

use mainstem_event::AgentEvent;
use mainstem_message::{ContentBlock, DataSource, Message, Role, StopReason, Usage};
use serde_json::{Map, Value, json};

use crate::foreign::addressed;

/// The tool that spawns an agent, and its name for clients, which know subagents by it.
const SPAWN: &str = "agent_spawn";
const TASK: &str = "task";

/// An answer of a model, as far as it has come.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) calls: Vec<Call>,
    pub(super) data: Vec<Value>,
    pub(super) usage: Option<Usage>,
    pub(super) stop: Option<StopReason>,
}

/// A call of an answer.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Call {
    /// Returns `true` if its arguments are sent at its end only, because they are renamed.
    pub(super) fn is_renamed(&self) -> bool {
        self.name == SPAWN
    }

    /// Returns its name and its arguments, those of a spawn as clients know them.
    pub(super) fn shown(&self) -> (&str, Value) {
        let arguments = serde_json::from_str(&self.arguments).unwrap_or_else(|_| json!({}));
        if self.is_renamed() { (TASK, as_task(arguments)) } else { (&self.name, arguments) }
    }
}

/// Returns the name of a tool as clients know it.
pub(super) fn shown_name(name: &str) -> &str {
    if name == SPAWN { TASK } else { name }
}

fn as_task(arguments: Value) -> Value {
    let Value::Object(mut arguments) = arguments else { return arguments };
    for (from, to) in [("agent_id", "subagent_type"), ("task", "description")] {
        if let Some(value) = arguments.remove(from) {
            arguments.insert(to.to_owned(), value);
        }
    }
    Value::Object(arguments)
}

impl Answer {
    pub(super) fn new(id: String, model: &str) -> Self {
        let (text, thinking, calls, data) = Default::default();
        Self { id, model: model.to_owned(), text, thinking, calls, data, usage: None, stop: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.thinking.is_empty() && self.calls.is_empty() && self.data.is_empty()
    }

    /// Returns the whole message.
    pub(super) fn whole(&self) -> Value {
        let calls = self.calls.iter().map(|call| {
            let (name, arguments) = call.shown();
            json!({ "name": name, "args": arguments, "id": call.id, "type": "tool_call" })
        });
        let content = match &*self.data {
            [] => Value::from(&*self.text),
            data => {
                let text = (!self.text.is_empty()).then(|| json!({ "type": "text", "text": self.text }));
                text.into_iter().chain(data.iter().cloned()).collect()
            }
        };
        json!({
            "content": content,
            "additional_kwargs": thinking(&self.thinking),
            "response_metadata": self.response(),
            "type": "ai",
            "name": null,
            "id": self.id,
            "tool_calls": calls.collect::<Vec<_>>(),
            "invalid_tool_calls": [],
            "usage_metadata": self.usage.map(usage),
        })
    }

    /// Returns a part of the message with this content.
    pub(super) fn text_part(&self, delta: &str) -> Value {
        self.part(delta.into(), "", Vec::new())
    }

    pub(super) fn thinking_part(&self, delta: &str) -> Value {
        self.part("".into(), delta, Vec::new())
    }

    pub(super) fn data_part(&self, block: Value) -> Value {
        self.part(Value::Array(vec![block]), "", Vec::new())
    }

    /// Returns the part that begins a call, continues it, or has it as a whole.
    pub(super) fn call_part(&self, index: usize, name: Option<&str>, arguments: &str) -> Value {
        let id = name.and_then(|_| Some(&self.calls.get(index)?.id));
        let chunk =
            json!({ "name": name, "args": arguments, "id": id, "index": index, "type": "tool_call_chunk" });
        self.part("".into(), "", vec![chunk])
    }

    /// Returns the last part, with the usage.
    pub(super) fn last_part(&self) -> Value {
        let mut part = self.text_part("");
        part["usage_metadata"] = self.usage.map_or(Value::Null, usage);
        part["response_metadata"] = self.response();
        part["chunk_position"] = "last".into();
        part
    }

    fn part(&self, content: Value, reasoning: &str, chunks: Vec<Value>) -> Value {
        json!({
            "content": content,
            "additional_kwargs": thinking(reasoning),
            "response_metadata": {},
            "type": "AIMessageChunk",
            "name": null,
            "id": self.id,
            "tool_calls": [],
            "invalid_tool_calls": [],
            "usage_metadata": null,
            "tool_call_chunks": chunks,
            "chunk_position": null,
        })
    }

    fn response(&self) -> Value {
        json!({ "model_name": self.model, "finish_reason": self.stop })
    }
}

/// The place of thinking that chat models without blocks use.
fn thinking(text: &str) -> Value {
    if text.is_empty() { json!({}) } else { json!({ "reasoning_content": text }) }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens(),
        "input_token_details": { "cache_read": usage.cache_read_tokens, "cache_creation": usage.cache_write_tokens },
        "output_token_details": { "reasoning": usage.reasoning_tokens },
    })
}

/// Returns the result of a call as a message.
pub(super) fn result(id: &str, call: &str, name: &str, content: Value, is_error: bool) -> Value {
    json!({
        "content": content,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": "tool",
        "name": shown_name(name),
        "id": id,
        "tool_call_id": call,
        "artifact": null,
        "status": if is_error { "error" } else { "success" },
    })
}

/// Returns a message of the system or the user.
pub(super) fn said(id: &str, name: Option<&str>, message: &Message, event: &AgentEvent) -> Value {
    let kind = if message.role == Role::System { "system" } else { "human" };
    let blocks = message.content.iter().filter_map(|one| block(&addressed(one, event)));
    let blocks: Vec<_> = blocks.collect();
    let is_text = message.content.iter().all(|block| block.as_text().is_some());
    let content = if is_text { message.text().into() } else { Value::Array(blocks) };
    json!({
        "content": content,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": kind,
        "name": name,
        "id": id,
    })
}

/// Returns the removal of a message.
pub(super) fn removed(id: &str) -> Value {
    json!({ "content": "", "additional_kwargs": {}, "response_metadata": {}, "type": "remove", "name": null, "id": id })
}

/// Returns a block of content; `None` for those that are messages of their own.
pub(super) fn block(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text { text, .. } => Some(json!({ "type": "text", "text": text })),
        ContentBlock::Data { media_type, source, .. } => Some(data(media_type, source)),
        _ => None,
    }
}

pub(super) fn data(media_type: &str, source: &DataSource) -> Value {
    let kind = match media_type.split_once('/') {
        Some((kind @ ("image" | "audio" | "video"), _)) => kind,
        _ => "file",
    };
    let mut block = Map::new();
    block.insert("type".to_owned(), kind.into());
    block.insert("mime_type".to_owned(), media_type.into());
    match source {
        DataSource::Base64(data) => block.insert("base64".to_owned(), data.as_str().into()),
        DataSource::Url(url) => block.insert("url".to_owned(), url.as_str().into()),
        _ => None,
    };
    Value::Object(block)
}
