//! Anthropic's Messages API, after "Streaming messages" of its documentation.

use std::time::{Duration, SystemTime};

use mainstem_message::{Allowance, ContentBlock, RateLimits, Role, StopReason, Usage};
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
        asked(text(&body["model"]), items(&body["messages"]).flat_map(blocks))
    }

    fn rate_limits(&self, limits: &RateLimits) -> String {
        // Any time: the reset is relative to the date of the same response.
        let now = SystemTime::UNIX_EPOCH;
        let of = |what: &str, allowance: Option<Allowance>| {
            let Some(Allowance { limit, remaining, reset_ms, .. }) = allowance else { return String::new() };
            // Dates have no fractions of a second.
            let reset = now + Duration::from_secs(reset_ms.unwrap_or_default().div_ceil(1_000));
            let name = format!("anthropic-ratelimit-{what}");
            let limit = limit.map_or_else(String::new, |limit| format!("{name}-limit: {limit}\r\n"));
            let reset = humantime::format_rfc3339_seconds(reset);
            format!("{limit}{name}-remaining: {remaining}\r\n{name}-reset: {reset}\r\n")
        };
        let date = format!("date: {}\r\n", httpdate::fmt_http_date(now));
        [
            date,
            of("requests", limits.requests),
            of("input-tokens", limits.input_tokens.or(limits.tokens)),
            of("output-tokens", limits.output_tokens),
        ]
        .concat()
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

    fn frames(&mut self, delta: &ModelDelta) -> Vec<String> {
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
            delta => self.calls.apply(delta).map(|call| self.call(&call)).unwrap_or_default(),
        }
    }

    fn end(&mut self) -> Vec<String> {
        let mut frames = self.close();
        let rest = self.calls.rest();
        frames.extend(rest.flat_map(|call| self.call(&call)));
        let (read, written) = (self.usage.cache_read_tokens, self.usage.cache_write_tokens);
        let hour = self.usage.cache_write_1h_tokens;
        let usage = json!({
            "cache_creation": {
                "ephemeral_5m_input_tokens": written.saturating_sub(hour), "ephemeral_1h_input_tokens": hour,
            },
            "input_tokens": self.usage.input_tokens.saturating_sub(read + written),
            "cache_read_input_tokens": read, "cache_creation_input_tokens": written,
            "output_tokens": self.usage.output_tokens,
        });
        let delta = json!({ "stop_reason": stop_reason(self.stop.as_ref()), "stop_sequence": null });
        frames.push(typed(&json!({ "type": "message_delta", "delta": delta, "usage": usage })));
        frames.push(typed(&json!({ "type": "message_stop" })));
        frames
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
        let mut frames = Vec::new();
        if self.open != form {
            frames = self.close();
            frames.push(self.start(start));
            self.open = form;
        }
        frames.push(self.delta(delta));
        frames
    }

    fn call(&mut self, call: &Call) -> Vec<String> {
        let mut frames = self.close();
        let id = call.id.clone().unwrap_or_else(|| format!("toolu_{}", self.index));
        frames.push(self.start(json!({ "type": "tool_use", "id": id, "name": call.name, "input": {} })));
        frames.push(self.delta(json!({ "type": "input_json_delta", "partial_json": "" })));
        frames.push(self.delta(json!({ "type": "input_json_delta", "partial_json": call.arguments })));
        self.open = "tool_use";
        frames.extend(self.close());
        frames
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
        let mut frames: Vec<_> = (open == "thinking").then(|| self.delta(signature)).into_iter().collect();
        frames.push(typed(&json!({ "type": "content_block_stop", "index": self.index })));
        self.index += 1;
        frames
    }
}

fn blocks(message: &Value) -> Vec<(Role, ContentBlock)> {
    let role = if message["role"] == "assistant" { Role::Assistant } else { Role::User };
    if let Some(content) = message["content"].as_str() {
        return vec![(role, ContentBlock::text(content))];
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
