//! What a request for a run asks for. Pure.

use std::collections::BTreeSet;

use mainstem::{
    encode::StreamMode,
    message::{ContentBlock, DataSource, Message, Opaque, Role},
};
use mainstem_api::{Code, Input, NewRun, OnDisconnect, RunOptions};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::problem::Problem;

/// The body of a request for a run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunRequest {
    pub(super) assistant_id: String,
    input: Value,
    pub(super) command: Option<Command>,
    stream_mode: Value,
    pub(super) stream_subgraphs: Option<bool>,
    metadata: Option<Map<String, Value>>,
    context: Option<Map<String, Value>>,
    config: Option<Config>,
    on_disconnect: Option<String>,
    multitask_strategy: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Config {
    configurable: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Command {
    pub(super) resume: Value,
    update: Value,
    goto: Value,
}

/// What becomes of an active run of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Active {
    /// The request is refused.
    Rejects,
    /// The new run waits for its end.
    Waits,
    /// It is cancelled.
    Cancels,
}

/// Settings that are accepted because they change nothing here: streams can always be resumed, and
/// what happens is always recorded.
const WITHOUT_EFFECT: [&str; 8] = [
    "if_not_exists",
    "stream_resumable",
    "durability",
    "checkpoint_during",
    "on_completion",
    "langsmith_tracer",
    "stream_protocol",
    "version",
];

impl RunRequest {
    /// Returns the value that answers an interrupt.
    pub(super) fn resume(&self) -> Option<&Value> {
        self.command.as_ref().map(|command| &command.resume).filter(|resume| !resume.is_null())
    }

    /// Checks what has no place here.
    ///
    /// # Errors
    /// There is such a setting; its name is in the message.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let unknown = self
            .others
            .iter()
            .find(|(name, value)| is_set(value) && !WITHOUT_EFFECT.contains(&name.as_str()));
        if let Some((name, _)) = unknown {
            return Err(wrong(format!("`{name}` is not supported by this server")));
        }
        if let Some(command) = &self.command
            && (is_set(&command.update) || is_set(&command.goto))
        {
            return Err(wrong("`command` has `resume` only; `update` and `goto` are not supported"));
        }
        Ok(())
    }

    /// Returns the modes of the stream; by default `values`.
    ///
    /// # Errors
    /// A mode is not supported.
    pub(super) fn modes(&self) -> Result<BTreeSet<StreamMode>, Problem> {
        let names: Vec<&str> = match &self.stream_mode {
            Value::Null => vec!["values"],
            Value::String(name) => vec![name],
            Value::Array(names) => names.iter().map(|name| name.as_str().unwrap_or_default()).collect(),
            _ => vec![""],
        };
        modes(names)
    }

    /// Returns `true` if the run is cancelled when its reader disconnects.
    pub(super) fn is_tied(&self) -> bool {
        self.on_disconnect.as_deref() == Some("cancel")
    }

    /// Returns what becomes of an active run.
    ///
    /// # Errors
    /// The strategy is not supported.
    pub(super) fn active(&self) -> Result<Active, Problem> {
        match self.multitask_strategy.as_deref() {
            Some("reject") => Ok(Active::Rejects),
            None | Some("enqueue") => Ok(Active::Waits),
            Some("interrupt") => Ok(Active::Cancels),
            Some(other) => Err(wrong(format!(
                "multitask_strategy {other:?} is not supported; use reject, enqueue or interrupt"
            ))),
        }
    }

    /// Returns the run to begin.
    ///
    /// # Errors
    /// The input is not messages of a person, or a setting is not supported.
    pub(super) fn to_run(&self) -> Result<NewRun, Problem> {
        let message = message(&self.input)?;
        let mut attributes = self.metadata.clone().unwrap_or_default();
        attributes.extend(self.context.clone().unwrap_or_default());
        attributes
            .extend(self.config.as_ref().and_then(|config| config.configurable.clone()).unwrap_or_default());
        attributes.retain(|_, value| !value.is_null());
        let on_disconnect = if self.is_tied() { OnDisconnect::Cancel } else { OnDisconnect::Continue };
        let options = RunOptions { attributes, on_disconnect, ..RunOptions::default() };
        let agent = Some(self.assistant_id.clone()).filter(|id| !id.is_empty());
        let queue = self.active()? != Active::Rejects;
        Ok(NewRun { agent, input: Some(Input(message)), queue, options, ..NewRun::default() })
    }
}

/// Returns `true` if a setting is more than its default.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    }
}

/// Returns the modes of these names.
///
/// # Errors
/// A mode is not supported.
pub(super) fn modes<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<BTreeSet<StreamMode>, Problem> {
    let mode = |name: &str| {
        StreamMode::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
            let known = StreamMode::ALL.map(StreamMode::name).join(", ");
            wrong(format!("stream_mode {name:?} is not supported; this server has {known}"))
        })
    };
    names.into_iter().map(mode).collect()
}

/// Returns the message of an input: `{"messages": …}`, a list of messages, a message or a text.
/// Several messages are the parts of one.
fn message(input: &Value) -> Result<Message, Problem> {
    let messages = match input.get("messages").unwrap_or(input) {
        Value::Array(messages) => messages.as_slice(),
        one => std::slice::from_ref(one),
    };
    let (mut id, mut content) = (None, Vec::new());
    for message in messages {
        let role = message.get("type").or_else(|| message.get("role")).and_then(Value::as_str);
        if !matches!(role, None | Some("human" | "user")) {
            let role = role.unwrap_or_default();
            return Err(wrong(format!("the input has messages of a person (`human`), not of {role:?}")));
        }
        id = message.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok()).or(id);
        content.extend(blocks(message.get("content").unwrap_or(message))?);
    }
    if content.is_empty() {
        return Err(wrong(
            "an `input` with `messages` is required, as {\"messages\": [{\"role\": \"human\", \"content\": \"…\"}]}",
        ));
    }
    let message = Message::new(Role::User, content);
    Ok(if let Some(id) = id { message.with_id(id) } else { message })
}

fn blocks(content: &Value) -> Result<Vec<ContentBlock>, Problem> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![ContentBlock::text(text.as_str())]),
        Value::Array(blocks) => blocks.iter().map(block).collect(),
        _ => Err(wrong("the content of a message is a text or a list of blocks")),
    }
}

fn block(block: &Value) -> Result<ContentBlock, Problem> {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    if let Some(text) = block.as_str().or_else(|| text("text")) {
        return Ok(ContentBlock::text(text));
    }
    let url = block.pointer("/image_url/url").or_else(|| block.get("image_url")).and_then(Value::as_str);
    let url = url.or_else(|| text("url"));
    let data = text("base64").or_else(|| text("data"));
    let found = match (url.and_then(data_url), url, data) {
        (Some((media_type, data)), ..) => Some((media_type, DataSource::Base64(data.to_owned()))),
        (None, Some(url), _) => {
            Some((text("mime_type").unwrap_or("image/*"), DataSource::Url(url.to_owned())))
        }
        (None, None, Some(data)) => text("mime_type").map(|kind| (kind, DataSource::Base64(data.to_owned()))),
        _ => None,
    };
    let (media_type, source) = found.ok_or_else(|| {
        let kind = text("type").unwrap_or_default();
        wrong(format!("a block of type {kind:?} is not supported; use `text`, `image_url`, or a block with `base64` and `mime_type`"))
    })?;
    Ok(ContentBlock::Data { media_type: media_type.to_owned(), source, opaque: Opaque::new() })
}

/// Reads `data:<media type>;base64,<data>`.
fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// A request that is refused because of its content.
pub(super) fn wrong(detail: impl Into<String>) -> Problem {
    Problem::new(Code::BadBody, detail)
}

#[cfg(test)]
mod tests {
    //! Inputs, modes and settings.

    use serde_json::json;

    use super::*;

    fn request(body: Value) -> RunRequest {
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn an_input_is_one_message_of_a_person() {
        #[track_caller]
        fn check(input: Value, expected: Result<&str, &str>) {
            let run = request(json!({ "input": input })).to_run();
            match expected {
                Ok(text) => assert_eq!(run.unwrap().input.unwrap().0.text(), text),
                Err(why) => {
                    let shown = format!("{:?}", run.unwrap_err());
                    assert!(shown.contains(why), "{shown}");
                }
            }
        }
        check(json!({ "messages": [{ "role": "user", "content": "a" }] }), Ok("a"));
        check(
            json!({ "messages": [{ "type": "human", "content": [{ "type": "text", "text": "a" }] }] }),
            Ok("a"),
        );
        check(json!({ "messages": ["a", { "role": "human", "content": "b" }] }), Ok("ab"));
        check(json!({ "messages": "a" }), Ok("a"));
        check(json!("a"), Ok("a"));
        check(json!({ "messages": [{ "type": "ai", "content": "a" }] }), Err("not of \\\"ai\\\""));
        check(json!({ "question": 1 }), Err("a text or a list of blocks"));
        check(Value::Null, Err("an `input` with `messages` is required"));
        check(json!({ "messages": [{ "content": [{ "type": "x" }] }] }), Err("a block of type \\\"x\\\""));
    }

    #[test]
    fn an_image_is_data() {
        #[track_caller]
        fn check(block: Value, media_type: &str, source: DataSource) {
            let input = json!({ "messages": [{ "role": "human", "id": "m-1", "content": [block] }] });
            let message = request(json!({ "input": input })).to_run().unwrap().input.unwrap().0;
            assert_eq!(message.id.as_ref().unwrap().as_str(), "m-1");
            let ContentBlock::Data { media_type: kind, source: from, .. } = &message.content[0] else {
                panic!()
            };
            assert_eq!((kind.as_str(), from), (media_type, &source));
        }
        let base64 = || DataSource::Base64("AAAA".into());
        check(
            json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } }),
            "image/png",
            base64(),
        );
        check(
            json!({ "type": "file", "base64": "AAAA", "mime_type": "application/pdf" }),
            "application/pdf",
            base64(),
        );
        let url = DataSource::Url("https://x/y.png".into());
        check(json!({ "type": "image", "url": "https://x/y.png" }), "image/*", url);
    }

    #[test]
    fn what_is_not_had_is_refused() {
        #[track_caller]
        fn check(body: Value, expected: &str) {
            let request = request(body);
            let refused = request
                .check()
                .and_then(|()| request.modes().map(drop))
                .and_then(|()| request.active().map(drop));
            match refused {
                Ok(()) => assert_eq!(expected, "ok"),
                Err(problem) => {
                    let shown = format!("{problem:?}");
                    assert!(!expected.is_empty() && shown.contains(expected), "{shown}");
                }
            }
        }
        check(json!({ "stream_resumable": true, "checkpoint": null, "after_seconds": 0 }), "ok");
        check(
            json!({ "stream_mode": ["values", "messages-tuple"], "multitask_strategy": "interrupt" }),
            "ok",
        );
        check(json!({ "checkpoint": { "checkpoint_id": "c" } }), "`checkpoint` is not supported");
        check(json!({ "interrupt_before": ["node"] }), "`interrupt_before`");
        check(json!({ "stream_mode": "events" }), "stream_mode \\\"events\\\" is not supported");
        check(json!({ "multitask_strategy": "rollback" }), "rollback");
        check(json!({ "command": { "goto": "node" } }), "`command` has `resume` only");
    }
}
