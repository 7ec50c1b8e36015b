//! Anthropic's Messages API, after "Streaming messages" of its documentation.

use mainstem_message::{ContentBlock, Role, StopReason, Usage};
use mainstem_model::{ModelDelta, ModelError, ModelRequest};
use serde_json::{Value, json};

use super::{Call, Calls, Dialect, asked, items, text, typed};

#[derive(Default)]
pub(super) struct Messages {
    /// The type of the open block, `""` if there is none.
    open: &'static str,
    index: usize,
    calls: Calls,
    usage: Usage,
    stop: Option<StopReason>,
}

impl Dialect for Messages {
    fn request(&self, _: &str, body: &Value) -> ModelRequest {
        asked(text(&body["model"]), items(&body["messages"]).flat_map(said))
    }

    fn begin(&mut self) -> Vec<String> {
        let message = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [], "stop_reason": null,
            "stop_sequence": null, "usage": { "input_tokens": 0, "output_tokens": 1 },
        });
        vec![
            typed(&json!({ "type": "message_start", "message": message })),
            typed(&json!({ "type": "ping" })),
        ]
    }

    fn say(&mut self, delta: &ModelDelta) -> Vec<String> {
        match delta {
            ModelDelta::Text(text) => {
                let start = json!({ "type": "text", "text": "" });
                self.part("text", start, json!({ "type": "text_delta", "text": text }))
            }
            ModelDelta::Thinking(thinking) => {
                let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
                self.part("thinking", start, json!({ "type": "thinking_delta", "thinking": thinking }))
            }
            ModelDelta::BlockEnd { .. } => self.close(),
            ModelDelta::Usage(usage) => {
                self.usage = *usage;
                Vec::new()
            }
            ModelDelta::Stop(reason) => {
                self.stop = Some(reason.clone());
                Vec::new()
            }
            delta => self.calls.hear(delta).map(|call| self.call(&call)).unwrap_or_default(),
        }
    }

    fn end(&mut self) -> Vec<String> {
        let mut said = self.close();
        let rest = self.calls.rest();
        said.extend(rest.flat_map(|call| self.call(&call)));
        let usage =
            json!({ "input_tokens": self.usage.input_tokens, "output_tokens": self.usage.output_tokens });
        let delta = json!({ "stop_reason": stop_reason(self.stop.as_ref()), "stop_sequence": null });
        said.push(typed(&json!({ "type": "message_delta", "delta": delta, "usage": usage })));
        said.push(typed(&json!({ "type": "message_stop" })));
        said
    }

    fn refusal(&self, error: &ModelError) -> Value {
        let kind = match error.status() {
            Some(401) => "authentication_error",
            Some(404) => "not_found_error",
            Some(429) => "rate_limit_error",
            Some(529) => "overloaded_error",
            Some(500..) | None => "api_error",
            Some(_) => "invalid_request_error",
        };
        json!({ "type": "error", "error": { "type": kind, "message": error.to_string() } })
    }
}

impl Messages {
    /// Returns a piece of a block; begins the block if another is open.
    fn part(&mut self, form: &'static str, start: Value, delta: Value) -> Vec<String> {
        let mut said = Vec::new();
        if self.open != form {
            said = self.close();
            said.push(self.start(start));
            self.open = form;
        }
        said.push(self.delta(delta));
        said
    }

    fn call(&mut self, call: &Call) -> Vec<String> {
        let mut said = self.close();
        let id = call.id.clone().unwrap_or_else(|| format!("toolu_{}", self.index));
        said.push(self.start(json!({ "type": "tool_use", "id": id, "name": call.name, "input": {} })));
        said.push(self.delta(json!({ "type": "input_json_delta", "partial_json": "" })));
        said.push(self.delta(json!({ "type": "input_json_delta", "partial_json": call.arguments })));
        self.open = "tool_use";
        said.extend(self.close());
        said
    }

    fn start(&self, block: Value) -> String {
        typed(&json!({ "type": "content_block_start", "index": self.index, "content_block": block }))
    }

    fn delta(&self, delta: Value) -> String {
        typed(&json!({ "type": "content_block_delta", "index": self.index, "delta": delta }))
    }

    fn close(&mut self) -> Vec<String> {
        let open = std::mem::take(&mut self.open);
        if open.is_empty() {
            return Vec::new();
        }
        let signature = json!({ "type": "signature_delta", "signature": "c2lnbmVk" });
        let mut said: Vec<_> = (open == "thinking").then(|| self.delta(signature)).into_iter().collect();
        said.push(typed(&json!({ "type": "content_block_stop", "index": self.index })));
        self.index += 1;
        said
    }
}

fn said(message: &Value) -> Vec<(Role, ContentBlock)> {
    let role = if message["role"] == "assistant" { Role::Assistant } else { Role::User };
    if let Some(said) = message["content"].as_str() {
        return vec![(role, ContentBlock::text(said))];
    }
    let block = |block: &Value| match text(&block["type"]).as_str() {
        "tool_result" => (Role::Tool, ContentBlock::text("")),
        _ => (role, ContentBlock::text(text(&block["text"]))),
    };
    items(&message["content"]).map(block).collect()
}

fn stop_reason(reason: Option<&StopReason>) -> &str {
    match reason {
        Some(StopReason::Length) => "max_tokens",
        Some(StopReason::ToolCalls) => "tool_use",
        Some(StopReason::Refusal | StopReason::ContentFilter) => "refusal",
        Some(StopReason::Other(other)) => other,
        _ => "end_turn",
    }
}
