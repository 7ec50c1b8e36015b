//! Between OpenAI's chat completions and the contract of a model. After the API reference: "Create chat completion" and "The chat
//! completion chunk object".

use std::sync::Arc;

use mainstem_message::{ContentBlock, Message, Role, StopReason, ToolCall};
use mainstem_model::{ModelDelta, ModelError, ModelRequest};
use serde_json::{Value, json};

/// As much of a request as a script looks at: the model, who spoke, what was said.
pub(super) fn request(body: &Value) -> ModelRequest {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let messages = body["messages"].as_array().into_iter().flatten().filter_map(|message| {
        let role = match message["role"].as_str()? {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => return None,
        };
        let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
            let function = &call["function"];
            let call =
                ToolCall::new(text(&call["id"]), text(&function["name"]), text(&function["arguments"]));
            ContentBlock::ToolCall(call)
        });
        let said = std::iter::once(ContentBlock::text(text(&message["content"])));
        Some(Arc::new(Message::new(role, said.chain(calls).collect())))
    });
    ModelRequest {
        agent: text(&body["model"]).into(),
        messages: messages.collect(),
        ..ModelRequest::default()
    }
}

/// The chunk that carries a delta; none for what this dialect does not say.
pub(super) fn chunk(delta: &ModelDelta) -> Option<Value> {
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
        ModelDelta::Usage(usage) => {
            let total = usage.total_tokens();
            let usage = json!({
                "prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens, "total_tokens": total,
            });
            json!({ "object": "chat.completion.chunk", "choices": [], "usage": usage })
        }
        ModelDelta::Stop(reason) => choice(json!({}), finish_reason(reason)),
        _ => return None,
    })
}

fn choice(delta: Value, finish_reason: Value) -> Value {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
    json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "choices": [choice] })
}

fn finish_reason(reason: &StopReason) -> Value {
    match reason {
        StopReason::Refusal => "stop".into(),
        other => other.to_string().into(),
    }
}

pub(super) fn refusal(error: &ModelError) -> Value {
    json!({ "error": { "message": error.to_string(), "type": error.kind().code(), "param": null, "code": error.kind().code() } })
}
