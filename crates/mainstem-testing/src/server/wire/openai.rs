//! OpenAI's chat completions, after the API reference: "Create chat completion" and "The chat
//! completion chunk object".

use mainstem_message::{ContentBlock, Role, StopReason, Usage};
use mainstem_model::{ModelDelta, ModelRequest};
use serde_json::{Value, json};

use super::{Dialect, asked, event, items, text};

#[derive(Default)]
pub(super) struct Chat {
    /// Sent in a chunk of its own, after the reason to stop.
    usage: Option<Usage>,
}

impl Dialect for Chat {
    fn request(&self, _: &str, body: &Value) -> ModelRequest {
        asked(text(&body["model"]), items(&body["messages"]).filter_map(blocks))
    }

    fn begin(&mut self) -> Vec<String> {
        vec![event(&choice(json!({ "role": "assistant", "content": "" }), Value::Null))]
    }

    fn frames(&mut self, delta: &ModelDelta) -> Vec<String> {
        if let ModelDelta::Usage(usage) = delta {
            self.usage = Some(*usage);
        }
        chunk(delta).iter().map(event).collect()
    }

    fn end(&mut self) -> Vec<String> {
        let usage = self.usage.map(|usage| {
            let usage = json!({
                "prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens,
                "total_tokens": usage.total_tokens(),
                "prompt_tokens_details": { "cached_tokens": usage.cache_read_tokens },
            });
            event(&of_answer(json!([]), usage))
        });
        usage.into_iter().chain(["data: [DONE]\n\n".to_owned()]).collect()
    }
}

/// Returns the role of a message, and its text: scripts need only these.
pub(super) fn blocks(message: &Value) -> Option<(Role, ContentBlock)> {
    let role = match message["role"].as_str()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => return None,
    };
    Some((role, ContentBlock::text(text(&message["content"]))))
}

/// Returns the chunk of a delta; `None` for one that this API lacks.
fn chunk(delta: &ModelDelta) -> Option<Value> {
    let call = |call: Value| choice(json!({ "tool_calls": [call] }), Value::Null);
    Some(match delta {
        ModelDelta::Text(text) => choice(json!({ "content": text }), Value::Null),
        ModelDelta::Thinking(text) => choice(json!({ "reasoning_content": text }), Value::Null),
        ModelDelta::CallStart { slot, id, name } => {
            let id = id.as_ref().map_or_else(|| format!("call_{slot}"), ToString::to_string);
            call(
                json!({ "index": slot, "id": id, "type": "function", "function": { "name": name, "arguments": "" } }),
            )
        }
        ModelDelta::CallArguments { slot, delta } => {
            call(json!({ "index": slot, "function": { "arguments": delta } }))
        }
        ModelDelta::Stop(reason) => choice(json!({}), finish_reason(reason)),
        _ => return None,
    })
}

fn choice(delta: Value, finish_reason: Value) -> Value {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
    of_answer(json!([choice]), Value::Null)
}

fn of_answer(choices: Value, usage: Value) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": choices, "usage": usage,
    })
}

fn finish_reason(reason: &StopReason) -> Value {
    match reason {
        StopReason::Refusal => "stop".into(),
        other => other.to_string().into(),
    }
}
