//! Ollama's own API, after "Generate a chat completion" of its documentation.

use mainstem_message::{StopReason, Usage};
use mainstem_model::{ModelDelta, ModelError, ModelRequest};
use serde_json::{Value, json};

use super::{Call, Calls, Dialect, asked, items, openai, text};

#[derive(Default)]
pub(super) struct Chat {
    calls: Calls,
    usage: Usage,
    stop: Option<StopReason>,
}

impl Dialect for Chat {
    fn request(&self, _: &str, body: &Value) -> ModelRequest {
        asked(text(&body["model"]), items(&body["messages"]).filter_map(openai::blocks))
    }

    fn media_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn frames(&mut self, delta: &ModelDelta) -> Vec<String> {
        match delta {
            ModelDelta::Text(text) => vec![line(json!({ "content": text }))],
            ModelDelta::Thinking(text) => vec![line(json!({ "content": "", "thinking": text }))],
            ModelDelta::Usage(usage) => {
                self.usage = *usage;
                Vec::new()
            }
            ModelDelta::Stop(reason) => {
                self.stop = Some(reason.clone());
                Vec::new()
            }
            delta => self.calls.apply(delta).iter().map(call).collect(),
        }
    }

    fn end(&mut self) -> Vec<String> {
        let mut frames: Vec<_> = self.calls.rest().map(|one| call(&one)).collect();
        let reason = if self.stop == Some(StopReason::Length) { "length" } else { "stop" };
        let end = json!({
            "model": "scripted", "created_at": CREATED, "message": { "role": "assistant", "content": "" }, "done": true,
            "done_reason": reason, "total_duration": 3, "load_duration": 1, "prompt_eval_count": self.usage.input_tokens,
            "prompt_eval_cached_count": self.usage.cache_read_tokens, "prompt_eval_duration": 1, "eval_count": self.usage.output_tokens, "eval_duration": 1,
        });
        frames.push(format!("{end}\n"));
        frames
    }

    fn refusal(&self, error: &ModelError) -> Value {
        json!({ "error": error.to_string() })
    }
}

const CREATED: &str = "2026-01-01T00:00:00.000000Z";

fn call(call: &Call) -> String {
    let function = json!({ "name": call.name, "arguments": call.arguments() });
    line(json!({ "content": "", "tool_calls": [{ "function": function }] }))
}

fn line(mut message: Value) -> String {
    message["role"] = "assistant".into();
    let line = json!({ "model": "scripted", "created_at": CREATED, "message": message, "done": false });
    format!("{line}\n")
}
