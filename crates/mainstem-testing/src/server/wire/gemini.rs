//! Google's Gemini API, after `streamGenerateContent` of its reference.

use mainstem_message::{ContentBlock, Role, StopReason, Usage};
use mainstem_model::{ModelDelta, ModelError, ModelRequest};
use serde_json::{Value, json};

use super::{Call, Calls, Dialect, asked, event, items, text};

#[derive(Default)]
pub(super) struct Generate {
    calls: Calls,
    usage: Usage,
    stop: Option<StopReason>,
}

impl Dialect for Generate {
    fn request(&self, path: &str, body: &Value) -> ModelRequest {
        let model = path.rsplit('/').next().and_then(|last| last.split(':').next()).unwrap_or_default();
        asked(model.to_owned(), items(&body["contents"]).flat_map(blocks))
    }

    fn frames(&mut self, delta: &ModelDelta) -> Vec<String> {
        match delta {
            ModelDelta::Text(text) => vec![chunk(json!({ "text": text }))],
            ModelDelta::Thinking(text) => vec![chunk(json!({ "text": text, "thought": true }))],
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
        let content = json!({ "role": "model", "parts": [{ "text": "" }] });
        let candidate =
            json!({ "content": content, "finishReason": finish_reason(self.stop.as_ref()), "index": 0 });
        let usage = json!({
            "promptTokenCount": self.usage.input_tokens, "candidatesTokenCount": self.usage.output_tokens,
            "totalTokenCount": self.usage.total_tokens(), "cachedContentTokenCount": self.usage.cache_read_tokens,
        });
        frames.push(event(
            &json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted" }),
        ));
        frames
    }

    fn refusal(&self, error: &ModelError) -> Value {
        let code = error.status().unwrap_or(500);
        let status = match code {
            400 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            _ => "INTERNAL",
        };
        json!({ "error": { "code": code, "message": error.to_string(), "status": status } })
    }
}

fn call(call: &Call) -> String {
    chunk(json!({ "functionCall": { "name": call.name, "args": call.arguments() } }))
}

fn chunk(part: Value) -> String {
    let candidate = json!({ "content": { "role": "model", "parts": [part] }, "index": 0 });
    event(&json!({ "candidates": [candidate], "modelVersion": "scripted" }))
}

fn blocks(content: &Value) -> Vec<(Role, ContentBlock)> {
    let role = if content["role"] == "model" { Role::Assistant } else { Role::User };
    let part = |part: &Value| match part.get("functionResponse") {
        Some(_) => (Role::Tool, ContentBlock::text("")),
        None => (role, ContentBlock::text(text(&part["text"]))),
    };
    items(&content["parts"]).map(part).collect()
}

fn finish_reason(reason: Option<&StopReason>) -> &str {
    match reason {
        Some(StopReason::Length) => "MAX_TOKENS",
        Some(StopReason::Refusal | StopReason::ContentFilter) => "SAFETY",
        Some(StopReason::Other(other)) => other,
        _ => "STOP",
    }
}
