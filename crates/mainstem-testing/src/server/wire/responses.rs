//! OpenAI's Responses API, after "Streaming events" of its reference.

use mainstem_message::{ContentBlock, Role, StopReason, Usage};
use mainstem_model::{ModelDelta, ModelRequest};
use serde_json::{Value, json};

use super::{Call, Calls, Dialect, asked, items, text, typed};

#[derive(Default)]
pub(super) struct Responses {
    /// The text of the open message so far.
    message: Option<String>,
    output: Vec<Value>,
    calls: Calls,
    usage: Usage,
    stop: Option<StopReason>,
    sequence: u64,
}

impl Dialect for Responses {
    fn request(&self, _: &str, body: &Value) -> ModelRequest {
        let input = &body["input"];
        let text = input.as_str().map(|content| (Role::User, ContentBlock::text(content)));
        asked(super::text(&body["model"]), text.into_iter().chain(items(input).filter_map(blocks)))
    }

    fn begin(&mut self) -> Vec<String> {
        let response = self.response("in_progress");
        vec![self.event("response.created", json!({ "response": response }))]
    }

    fn frames(&mut self, delta: &ModelDelta) -> Vec<String> {
        match delta {
            ModelDelta::Text(text) => self.text(text),
            ModelDelta::Thinking(text) => self.reasoning(text),
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
        let status = if self.stop == Some(StopReason::Length) { "incomplete" } else { "completed" };
        let mut response = self.response(status);
        if status == "incomplete" {
            response["incomplete_details"] = json!({ "reason": "max_output_tokens" });
        }
        response["usage"] = json!({
            "input_tokens": self.usage.input_tokens,
            "input_tokens_details": { "cached_tokens": self.usage.cache_read_tokens },
            "output_tokens": self.usage.output_tokens, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": self.usage.total_tokens(),
        });
        frames.push(self.event(&format!("response.{status}"), json!({ "response": response })));
        frames
    }
}

impl Responses {
    fn event(&mut self, name: &str, mut data: Value) -> String {
        data["type"] = name.into();
        data["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        typed(&data)
    }

    fn response(&self, status: &str) -> Value {
        json!({
            "id": "resp_1", "object": "response", "created_at": 0, "status": status, "model": "scripted", "error": null,
            "incomplete_details": null, "output": self.output,
        })
    }

    fn added(&mut self, item: &Value) -> String {
        let index = self.output.len();
        self.event("response.output_item.added", json!({ "output_index": index, "item": item }))
    }

    fn done(&mut self, item: Value) -> String {
        let index = self.output.len();
        self.output.push(item.clone());
        self.event("response.output_item.done", json!({ "output_index": index, "item": item }))
    }

    fn text(&mut self, delta: &str) -> Vec<String> {
        let (index, mut frames) = (self.output.len(), Vec::new());
        if self.message.is_none() {
            frames.push(self.added(&message(index, "in_progress", json!([]))));
            let part = json!({ "type": "output_text", "text": "", "annotations": [] });
            frames.push(self.part("response.content_part.added", json!({ "part": part })));
        }
        self.message.get_or_insert_default().push_str(delta);
        frames.push(self.part("response.output_text.delta", json!({ "delta": delta, "logprobs": [] })));
        frames
    }

    /// Returns an event about the only part of the open message.
    fn part(&mut self, name: &str, mut data: Value) -> String {
        let index = self.output.len();
        (data["item_id"], data["output_index"], data["content_index"]) =
            (format!("msg_{index}").into(), index.into(), 0.into());
        self.event(name, data)
    }

    fn close(&mut self) -> Vec<String> {
        let Some(text) = self.message.take() else { return Vec::new() };
        let part = json!({ "type": "output_text", "text": text, "annotations": [] });
        let item = message(self.output.len(), "completed", json!([part]));
        vec![
            self.part("response.output_text.done", json!({ "text": text, "logprobs": [] })),
            self.part("response.content_part.done", json!({ "part": part })),
            self.done(item),
        ]
    }

    /// Returns a summary of reasoning, each delta an item.
    fn reasoning(&mut self, text: &str) -> Vec<String> {
        let mut frames = self.close();
        let index = self.output.len();
        let id = format!("rs_{index}");
        let item = |summary: Value| json!({ "type": "reasoning", "id": id, "summary": summary, "encrypted_content": "c2VhbGVk" });
        let place = |mut data: Value| {
            (data["item_id"], data["output_index"], data["summary_index"]) =
                (id.clone().into(), index.into(), 0.into());
            data
        };
        let part = |text: &str| json!({ "type": "summary_text", "text": text });
        frames.push(self.added(&item(json!([]))));
        frames.push(self.event("response.reasoning_summary_part.added", place(json!({ "part": part("") }))));
        frames.push(self.event("response.reasoning_summary_text.delta", place(json!({ "delta": text }))));
        frames.push(self.event("response.reasoning_summary_text.done", place(json!({ "text": text }))));
        frames.push(self.event("response.reasoning_summary_part.done", place(json!({ "part": part(text) }))));
        frames.push(self.done(item(json!([part(text)]))));
        frames
    }

    fn call(&mut self, call: &Call) -> Vec<String> {
        let mut frames = self.close();
        let index = self.output.len();
        let (item_id, call_id) = (format!("fc_{index}"), call.id.clone());
        let call_id = call_id.unwrap_or_else(|| format!("call_{index}"));
        let item = |arguments: &str, status: &str| {
            json!({
                "type": "function_call", "id": item_id, "call_id": call_id, "name": call.name, "arguments": arguments,
                "status": status,
            })
        };
        frames.push(self.added(&item("", "in_progress")));
        let at = |mut data: Value| {
            (data["item_id"], data["output_index"]) = (item_id.clone().into(), index.into());
            data
        };
        let delta = at(json!({ "delta": call.arguments }));
        frames.push(self.event("response.function_call_arguments.delta", delta));
        let whole = at(json!({ "arguments": call.arguments }));
        frames.push(self.event("response.function_call_arguments.done", whole));
        frames.push(self.done(item(&call.arguments, "completed")));
        frames
    }
}

fn message(index: usize, status: &str, content: Value) -> Value {
    json!({ "type": "message", "id": format!("msg_{index}"), "role": "assistant", "status": status, "content": content })
}

fn blocks(item: &Value) -> Option<(Role, ContentBlock)> {
    let content = &item["content"];
    let all = || items(content).map(|part| text(&part["text"])).collect::<String>();
    let content = content.as_str().map_or_else(all, str::to_owned);
    Some(match (item["type"].as_str(), item["role"].as_str()) {
        (Some("function_call"), _) => (Role::Assistant, ContentBlock::text("")),
        (Some("function_call_output"), _) => (Role::Tool, ContentBlock::text("")),
        (_, Some("assistant")) => (Role::Assistant, ContentBlock::text(content)),
        (_, Some("user")) => (Role::User, ContentBlock::text(content)),
        _ => return None,
    })
}
