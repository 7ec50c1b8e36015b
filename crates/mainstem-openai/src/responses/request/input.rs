//! The conversation as input items, in chronological order.

use std::borrow::Cow;

use mainstem_http::Arguments;
use mainstem_message::{ContentBlock, Message, Role, ToolCall, ToolResult};
use mainstem_model::ModelRequest;
use serde::Serialize;
use serde_json::{Map, Value};

use super::content::{Part, part};
use crate::{
    request::text,
    responses::{dialect::Dialect, opaque},
};

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Item<'a> {
    Ours(Ours<'a>),
    /// As the vendor sent it.
    Reasoning(&'a Map<String, Value>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Ours<'a> {
    Message {
        role: &'static str,
        content: Vec<MessagePart<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: Cow<'a, str>,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Output<'a>,
    },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum MessagePart<'a> {
    ByUs(Part<'a>),
    ByModel(OutputText<'a>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "output_text")]
pub(super) struct OutputText<'a> {
    text: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Output<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

/// Returns all messages. Fails with what the API has no form for, and its place.
pub(super) fn input<'a>(request: &'a ModelRequest, dialect: &Dialect) -> Result<Vec<Item<'a>>, String> {
    let mut input = Input { done: Vec::new(), thoughts: Vec::new(), forgetful: dialect.forgetful };
    for (number, message) in (1..).zip(&request.messages) {
        input.add(number, message)?;
    }
    Ok(input.done)
}

struct Input<'a> {
    done: Vec<Item<'a>>,
    /// Reasoning without a later item. The vendor needs it [before the item that followed it], and
    /// refuses it alone: a turn that was cut off while the model reasoned is left out.
    ///
    /// [before the item that followed it]: https://platform.openai.com/docs/guides/reasoning#keeping-reasoning-items-in-context
    thoughts: Vec<&'a Map<String, Value>>,
    forgetful: bool,
}

impl<'a> Input<'a> {
    fn add(&mut self, number: usize, message: &'a Message) -> Result<(), String> {
        for result in message.tool_results() {
            self.push(Ours::FunctionCallOutput {
                call_id: result.tool_call_id.as_str(),
                output: output(result),
            });
        }
        match message.role {
            Role::System => self.person("system", number, message),
            Role::User => self.person("user", number, message),
            Role::Assistant => {
                message.content.iter().for_each(|block| self.model(block));
                self.thoughts.clear();
                Ok(())
            }
            Role::Tool => Ok(()),
        }
    }

    fn person(&mut self, role: &'static str, number: usize, message: &'a Message) -> Result<(), String> {
        let parts = (1..).zip(&message.content).filter_map(|(place, block)| {
            let located = |media_type| {
                format!(
                    "takes text, images and documents, but no {media_type} (block {place} of message {number}); send it as text"
                )
            };
            part(block).map(|part| part.map(MessagePart::ByUs).map_err(located))
        });
        let content: Vec<_> = parts.collect::<Result<_, _>>()?;
        if !content.is_empty() {
            self.push(Ours::Message { role, content, phase: None });
        }
        Ok(())
    }

    /// Adds a block of the model's. Data that it made can't be sent as its own.
    fn model(&mut self, block: &'a ContentBlock) {
        match block {
            ContentBlock::Text { text, opaque } if !text.is_empty() => {
                self.say(text, opaque::phase_of(opaque));
            }
            ContentBlock::Thinking { opaque, .. } if !self.forgetful => {
                self.thoughts.extend(opaque::reasoning_of(opaque));
            }
            ContentBlock::ToolCall(ToolCall { id, name, arguments: written, .. }) => {
                let arguments = Arguments::of(written).as_text();
                self.push(Ours::FunctionCall { call_id: id.as_str(), name, arguments });
            }
            _ => {}
        }
    }

    /// Appends to the previous message, if that is the model's, in the same phase.
    fn say(&mut self, text: &'a str, phase: Option<&'a str>) {
        let said = MessagePart::ByModel(OutputText { text });
        match self.done.last_mut() {
            Some(Item::Ours(Ours::Message { role: "assistant", content, phase: last }))
                if self.thoughts.is_empty() && *last == phase =>
            {
                content.push(said);
            }
            _ => self.push(Ours::Message { role: "assistant", content: vec![said], phase }),
        }
    }

    fn push(&mut self, item: Ours<'a>) {
        self.done.extend(self.thoughts.drain(..).map(Item::Reasoning));
        self.done.push(Item::Ours(item));
    }
}

/// Returns a tool's result: text alone, or in parts. The API has no field for its state, so an
/// empty result of a failed call says so.
fn output(result: &ToolResult) -> Output<'_> {
    if !result.content.iter().any(|block| matches!(block, ContentBlock::Data { .. })) {
        let said = text(&result.content);
        return Output::Text(if said.is_empty() { result.state.as_str().into() } else { said });
    }
    // The tool has run; its data must not stop the conversation.
    let unseen = |_| Part::Text { text: "(data that you cannot be shown)" };
    let parts = result.content.iter().filter_map(part);
    Output::Parts(parts.map(|part| part.unwrap_or_else(unseen)).collect())
}
