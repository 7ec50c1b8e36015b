//! The input of a run from the messages of a frontend, which sends the whole conversation.

use std::{fmt::Write, sync::Arc};

use mainstem::message::{ContentBlock, DataSource, Message, MessageId, Role};
use serde_json::Value;

use super::input::{self, RunAgentInput, wrong};
use crate::problem::Problem;

/// What the ids begin with that the events of this program give to messages.
const OWN: &str = "reply-";

/// Returns `true` if a session has the message of this id, or wrote it.
pub(super) fn knows(history: &[Arc<Message>], id: &str) -> bool {
    if history.is_empty() {
        return false;
    }
    let name = MessageId::from_lossy(id);
    id.starts_with(OWN) || history.iter().any(|message| message.id.as_ref() == Some(&name))
}

/// Returns the last message as the input of a run. Before it come what the application tells the
/// agent, and the messages that the session does not have: those after the last one that it knows.
///
/// # Errors
/// A part of the message can't be read.
pub(super) fn input(request: &RunAgentInput, history: &[Arc<Message>]) -> Result<Message, Problem> {
    let Some((last, earlier)) = request.messages.split_last() else {
        return Err(wrong("/messages", "there is no message"));
    };
    let known = earlier.iter().rposition(|message| knows(history, &message.id));
    let unknown = &earlier[known.map_or(0, |place| place + 1)..];
    let mut content: Vec<_> = [context(request), conversation(unknown)].into_iter().flatten().collect();
    content.extend(blocks(last, request.messages.len() - 1)?);
    Ok(Message::new(Role::User, content).with_id(MessageId::from_lossy(&*last.id)))
}

fn context(request: &RunAgentInput) -> Option<ContentBlock> {
    let mut text = String::new();
    for context in &request.context {
        // Writing to a `String` can't fail.
        let _ = writeln!(text, "- {}: {}", context.description, plain(&context.value));
    }
    (!text.is_empty()).then(|| ContentBlock::text(format!("<context>\n{text}</context>\n\n")))
}

fn conversation(messages: &[input::Message]) -> Option<ContentBlock> {
    let mut text = String::new();
    // Activities are shown to a person and are not part of the conversation.
    for message in messages.iter().filter(|message| message.role != "activity") {
        let _ = writeln!(text, "{}: {}", message.role, message.text());
    }
    (!text.is_empty())
        .then(|| ContentBlock::text(format!("<earlier_conversation>\n{text}</earlier_conversation>\n\n")))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl input::Message {
    /// Returns the text, with other parts and calls as JSON.
    pub(super) fn text(&self) -> String {
        let content = match &self.content {
            Value::Null => String::new(),
            Value::Array(parts) => {
                let texts = parts.iter().map(|part| part.get("text").map_or_else(|| part.to_string(), plain));
                texts.collect::<Vec<_>>().join("\n")
            }
            other => plain(other),
        };
        let Some(calls) = self.calls() else { return content };
        format!("{content}\n[tool calls: {calls}]")
    }

    fn calls(&self) -> Option<&Value> {
        self.rest.get("toolCalls").filter(|calls| calls.as_array().is_some_and(|calls| !calls.is_empty()))
    }
}

fn blocks(message: &input::Message, place: usize) -> Result<Vec<ContentBlock>, Problem> {
    let at = |part: usize| format!("/messages/{place}/content/{part}");
    match &message.content {
        Value::String(text) => Ok(vec![ContentBlock::text(&**text)]),
        Value::Array(parts) => {
            let parts = parts.iter().enumerate();
            parts.map(|(part, value)| block(value).map_err(|why| wrong(&at(part), why))).collect()
        }
        _ => Err(wrong(&format!("/messages/{place}/content"), "a text or an array of parts is required")),
    }
}

fn block(part: &Value) -> Result<ContentBlock, &'static str> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = text(part, "type").unwrap_or_default();
    if kind == "text" {
        return text(part, "text").map(ContentBlock::text).ok_or("a text part has `text`");
    }
    let (source, media_type) = match part.get("source") {
        Some(source) => {
            let value = text(source, "value").ok_or("a source has a `value`")?;
            let place = match source.get("type").and_then(Value::as_str) {
                Some("data") => DataSource::Base64(value),
                Some("url") => DataSource::Url(value),
                _ => {
                    return Err("the source of a part is `data` or `url`; files at a provider can't be read");
                }
            };
            (place, text(source, "mimeType"))
        }
        // The parts of clients before 1.0.
        None => {
            let data = text(part, "data").map(DataSource::Base64);
            let place = data.or_else(|| text(part, "url").map(DataSource::Url));
            (place.ok_or("a part has a `source`")?, text(part, "mimeType"))
        }
    };
    let guess = || match &*kind {
        "image" | "audio" | "video" => format!("{kind}/*"),
        _ => "application/octet-stream".to_owned(),
    };
    let media_type = media_type.unwrap_or_else(guess);
    Ok(ContentBlock::Data { media_type, source, opaque: Default::default() })
}
