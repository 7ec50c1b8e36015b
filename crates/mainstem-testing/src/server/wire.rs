//! Between a vendor's API and the contract of a model: each dialect reads as much of a request as a
//! script looks at, and writes deltas as the vendor documents them.

mod anthropic;
mod gemini;
mod ollama;
mod openai;
mod responses;

use std::{collections::BTreeMap, sync::Arc};

use mainstem_message::{ContentBlock, Message, Role};
use mainstem_model::{ModelDelta, ModelError, ModelRequest};
use serde_json::{Value, json};

/// One answer in a vendor's API.
pub(super) trait Dialect: Send {
    /// Returns the model that is asked, what was said, and who said it.
    fn request(&self, path: &str, body: &Value) -> ModelRequest;

    /// Returns the media type of an answer.
    fn media_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// Returns what comes before everything else.
    fn begin(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Returns what says a delta; nothing for what the API does not say, or says later.
    fn say(&mut self, delta: &ModelDelta) -> Vec<String>;

    /// Returns what comes after everything else.
    fn end(&mut self) -> Vec<String>;

    /// Returns the body of a refusal.
    fn refusal(&self, error: &ModelError) -> Value {
        let code = error.kind().code();
        json!({ "error": { "message": error.to_string(), "type": code, "param": null, "code": code } })
    }
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

/// Returns a server-sent event that is named as its data's `type` says.
fn typed(data: &Value) -> String {
    format!("event: {}\n{}", text(&data["type"]), event(data))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns a request of this model; what one side says in several pieces is one message.
fn asked(model: String, said: impl Iterator<Item = (Role, ContentBlock)>) -> ModelRequest {
    let mut messages: Vec<Message> = Vec::new();
    for (role, block) in said {
        match messages.last_mut().filter(|last| last.role == role && role == Role::Assistant) {
            Some(last) => last.content.push(block),
            None => messages.push(Message::new(role, vec![block])),
        }
    }
    let messages = messages.into_iter().map(Arc::new).collect();
    ModelRequest { agent: model.into(), messages, ..ModelRequest::default() }
}

/// Calls whose arguments a vendor says whole.
#[derive(Default)]
struct Calls(BTreeMap<usize, Call>);

#[derive(Default)]
struct Call {
    id: Option<String>,
    name: String,
    arguments: String,
}

impl Call {
    /// As JSON; what is none is an empty object.
    fn arguments(&self) -> Value {
        serde_json::from_str(&self.arguments).unwrap_or_else(|_| json!({}))
    }
}

impl Calls {
    /// Takes a delta of a call in; the call, if it is complete.
    fn hear(&mut self, delta: &ModelDelta) -> Option<Call> {
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

    /// Those that nobody ended.
    fn rest(&mut self) -> impl Iterator<Item = Call> + use<> {
        std::mem::take(&mut self.0).into_values()
    }
}
