//! Translates between a vendor's API and the contract of a model: each dialect reads the parts of a
//! request that scripts use, and writes deltas as the vendor documents them.

mod anthropic;
mod gemini;
mod ollama;
mod openai;
mod responses;

use std::{collections::BTreeMap, sync::Arc};

use mainstem_message::{Allowance, ContentBlock, Message, RateLimits, Role};
use mainstem_model::{ModelDelta, ModelError, ModelRequest};
use serde_json::{Value, json};

/// One response in a vendor's API.
pub(super) trait Dialect: Send {
    /// Returns the requested model, the messages and their roles.
    fn request(&self, path: &str, body: &Value) -> ModelRequest;

    /// Returns the media type of a response.
    fn media_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// Returns the headers of a response that report limits on the rate of calls.
    fn rate_limits(&self, limits: &RateLimits) -> String {
        header_of("requests", limits.requests) + &header_of("tokens", limits.tokens)
    }

    /// Returns the frames before the first delta.
    fn begin(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the frames of a delta; empty for one that the API lacks, or sends later.
    fn frames(&mut self, delta: &ModelDelta) -> Vec<String>;

    /// Returns the frames after the last delta.
    fn end(&mut self) -> Vec<String>;

    /// Returns the body of a refusal.
    fn refusal(&self, error: &ModelError) -> Value {
        let code = error.kind().code();
        json!({ "error": { "message": error.to_string(), "type": code, "param": null, "code": code } })
    }
}

/// Returns the headers of a limit, as OpenAI has them.
fn header_of(what: &str, allowance: Option<Allowance>) -> String {
    let Some(Allowance { limit, remaining, reset_ms, .. }) = allowance else { return String::new() };
    let limit = limit.map_or_else(String::new, |limit| format!("x-ratelimit-limit-{what}: {limit}\r\n"));
    let reset = reset_ms.map_or_else(String::new, |reset| format!("x-ratelimit-reset-{what}: {reset}ms\r\n"));
    format!("{limit}x-ratelimit-remaining-{what}: {remaining}\r\n{reset}")
}

/// Returns the dialect of an endpoint.
pub(super) fn of(path: &str) -> Box<dyn Dialect> {
    let path = path.split('?').next().unwrap_or_default();
    if path.ends_with("/messages") {
        Box::<anthropic::Messages>::default()
    } else if path.contains(":streamGenerateContent") {
        Box::<gemini::Generate>::default()
    } else if path.ends_with("/api/chat") {
        Box::<ollama::Chat>::default()
    } else if path.ends_with("/responses") {
        Box::<responses::Responses>::default()
    } else {
        Box::<openai::Chat>::default()
    }
}

/// Returns a server-sent event without a name.
fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// Returns a server-sent event with its data's `type` as name.
fn typed(data: &Value) -> String {
    format!("event: {}\n{}", text(&data["type"]), event(data))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns a request of this model; consecutive pieces of one role are one message.
fn asked(model: String, blocks: impl Iterator<Item = (Role, ContentBlock)>) -> ModelRequest {
    let mut messages: Vec<Message> = Vec::new();
    for (role, block) in blocks {
        match messages.last_mut().filter(|last| last.role == role && role == Role::Assistant) {
            Some(last) => last.content.push(block),
            None => messages.push(Message::new(role, vec![block])),
        }
    }
    let messages = messages.into_iter().map(Arc::new).collect();
    ModelRequest { agent: model.into(), messages, ..ModelRequest::default() }
}

/// Calls whose arguments a vendor sends whole.
#[derive(Default)]
struct Calls(BTreeMap<usize, Call>);

#[derive(Default)]
struct Call {
    id: Option<String>,
    name: String,
    arguments: String,
}

impl Call {
    /// Returns the arguments as JSON; an empty object if they are invalid.
    fn arguments(&self) -> Value {
        serde_json::from_str(&self.arguments).unwrap_or_else(|_| json!({}))
    }
}

impl Calls {
    /// Adds a delta of a call; returns the call, if it is complete.
    fn apply(&mut self, delta: &ModelDelta) -> Option<Call> {
        match delta {
            ModelDelta::CallStart { slot, id, name } => {
                let id = id.as_ref().map(ToString::to_string);
                self.0.insert(*slot, Call { id, name: name.clone(), arguments: String::new() });
                None
            }
            ModelDelta::CallArguments { slot, delta } => {
                self.0.entry(*slot).or_default().arguments.push_str(delta);
                None
            }
            ModelDelta::CallEnd { slot, .. } => self.0.remove(slot),
            _ => None,
        }
    }

    /// Takes the calls that are still open.
    fn rest(&mut self) -> impl Iterator<Item = Call> + use<> {
        std::mem::take(&mut self.0).into_values()
    }
}
