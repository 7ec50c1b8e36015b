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
    Typed(TypedItem<'a>),
    /// As the vendor sent it.
    AsSent(&'a Map<String, Value>),
}

impl<'a> From<TypedItem<'a>> for Item<'a> {
    fn from(item: TypedItem<'a>) -> Self {
        Self::Typed(item)
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum TypedItem<'a> {
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
    Input(Part<'a>),
    Output(OutputText<'a>),
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

/// Converts the messages to input items.
///
/// # Errors
/// The content that the API can't represent, with its position.
pub(super) fn input<'a>(request: &'a ModelRequest, dialect: &Dialect) -> Result<Vec<Item<'a>>, String> {
    let mut input =
        Input { items: Vec::new(), pending_reasoning: Vec::new(), omits_reasoning: dialect.omits_reasoning };
    for (number, message) in (1..).zip(&request.messages) {
        input.add(number, message)?;
    }
    Ok(input.items)
}

struct Input<'a> {
    items: Vec<Item<'a>>,
    /// Reasoning items that no other item has followed yet. The API requires them [before the item
    /// that followed them] and rejects them alone, so trailing ones are dropped.
    ///
    /// [before the item that followed them]: https://platform.openai.com/docs/guides/reasoning#keeping-reasoning-items-in-context
    pending_reasoning: Vec<&'a Map<String, Value>>,
    omits_reasoning: bool,
}

impl<'a> Input<'a> {
    fn add(&mut self, number: usize, message: &'a Message) -> Result<(), String> {
        for result in message.tool_results() {
            self.push(TypedItem::FunctionCallOutput {
                call_id: result.tool_call_id.as_str(),
                output: output(result),
            });
        }
        match message.role {
            Role::System => self.add_input_message("system", number, message),
            Role::User => self.add_input_message("user", number, message),
            Role::Assistant => {
                message.content.iter().for_each(|block| self.add_output_block(block));
                self.pending_reasoning.clear();
                Ok(())
            }
            Role::Tool => Ok(()),
        }
    }

    fn add_input_message(
        &mut self,
        role: &'static str,
        number: usize,
        message: &'a Message,
    ) -> Result<(), String> {
        let parts = (1..).zip(&message.content).filter_map(|(place, block)| {
            let located = |media_type| {
                format!(
                    "supports text, images and documents, not {media_type} (block {place} of message {number}); send it as text"
                )
            };
            part(block).map(|part| part.map(MessagePart::Input).map_err(located))
        });
        let content: Vec<_> = parts.collect::<Result<_, _>>()?;
        if !content.is_empty() {
            self.push(TypedItem::Message { role, content, phase: None });
        }
        Ok(())
    }

    /// Adds a block of an assistant message. Data is left out: the API has no output item for it.
    fn add_output_block(&mut self, block: &'a ContentBlock) {
        match block {
            ContentBlock::Text { text, opaque } if !text.is_empty() => {
                self.add_output_text(text, opaque::phase_of(opaque));
            }
            ContentBlock::Thinking { opaque, .. } => match opaque::server_tool_of(opaque) {
                // The API refuses such an item without the reasoning before it.
                _ if self.omits_reasoning => {}
                Some(item) => self.push(Item::AsSent(item)),
                None => self.pending_reasoning.extend(opaque::reasoning_of(opaque)),
            },
            ContentBlock::ToolCall(ToolCall { id, name, arguments: written, .. }) => {
                let arguments = Arguments::of(written).as_text();
                self.push(TypedItem::FunctionCall { call_id: id.as_str(), name, arguments });
            }
            _ => {}
        }
    }

    /// Appends text to the previous item, if that is an assistant message in the same phase.
    fn add_output_text(&mut self, text: &'a str, phase: Option<&'a str>) {
        let part = MessagePart::Output(OutputText { text });
        match self.items.last_mut() {
            Some(Item::Typed(TypedItem::Message { role: "assistant", content, phase: last }))
                if self.pending_reasoning.is_empty() && *last == phase =>
            {
                content.push(part);
            }
            _ => self.push(TypedItem::Message { role: "assistant", content: vec![part], phase }),
        }
    }

    fn push(&mut self, item: impl Into<Item<'a>>) {
        self.items.extend(self.pending_reasoning.drain(..).map(Item::AsSent));
        self.items.push(item.into());
    }
}

/// Returns a tool's result: text alone, or in parts. An empty text is replaced by the state, for
/// which the API has no field.
fn output(result: &ToolResult) -> Output<'_> {
    if !result.content.iter().any(|block| matches!(block, ContentBlock::Data { .. })) {
        let text = text(&result.content);
        return Output::Text(if text.is_empty() { result.state.as_str().into() } else { text });
    }
    // The tool has run; its data must not stop the conversation.
    let unseen = |_| Part::Text { text: "(data omitted: unsupported type)" };
    let parts = result.content.iter().filter_map(part);
    Output::Parts(parts.map(|part| part.unwrap_or_else(unseen)).collect())
}
