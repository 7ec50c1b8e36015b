//! The conversation in the vendor's form.

use std::{borrow::Cow, mem};

use mainstem_http::Arguments;
use mainstem_message::{ContentBlock, Message, Role, ToolCall, ToolResult};
use mainstem_model::ModelRequest;
use serde::Serialize;
use serde_json::Value;

use super::part::{self, Content, Part};
use crate::dialect::Dialect;

#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum Turn<'a> {
    System {
        content: Cow<'a, str>,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        /// `null` beside tool calls.
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: Cow<'a, str>,
    },
}

#[derive(Debug, Serialize)]
pub(super) struct Call<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

/// Returns the instructions and all messages. Fails with what the API has no form for.
pub(super) fn messages<'a>(
    request: &'a ModelRequest,
    dialect: &Dialect,
) -> Result<Vec<Turn<'a>>, &'static str> {
    let system = request.system.iter().map(|system| Turn::System { content: (&**system).into() });
    let mut turns = Turns { done: system.collect(), attached: Vec::new(), reasoning: dialect.reasoning };
    for message in &request.messages {
        turns.add(message)?;
    }
    turns.attach();
    Ok(turns.done)
}

struct Turns<'a> {
    done: Vec<Turn<'a>>,
    /// Data of tool results. A tool message holds only text, and the messages that answer one turn
    /// must be adjacent, so the data follows them as the user's.
    attached: Vec<Part<'a>>,
    reasoning: bool,
}

impl<'a> Turns<'a> {
    fn add(&mut self, message: &'a Message) -> Result<(), &'static str> {
        message.tool_results().for_each(|result| self.result(result));
        if message.role != Role::Tool {
            self.attach();
        }
        match message.role {
            Role::System => self.done.push(Turn::System { content: text(&message.content) }),
            Role::User => {
                self.done.extend(part::content(&message.content)?.map(|content| Turn::User { content }))
            }
            Role::Assistant => self.done.extend(self.assistant(message)),
            Role::Tool => {}
        }
        Ok(())
    }

    /// Returns a turn; `None` for an empty one, which servers refuse.
    fn assistant(&self, message: &'a Message) -> Option<Turn<'a>> {
        let tool_calls: Vec<_> = message.tool_calls().map(call).collect();
        let content = Some(text(&message.content)).filter(|text| !text.is_empty());
        let called = !tool_calls.is_empty();
        let reasoning_content = (called && self.reasoning).then(|| thinking(&message.content));
        (called || content.is_some()).then_some(Turn::Assistant { content, reasoning_content, tool_calls })
    }

    fn result(&mut self, result: &'a ToolResult) {
        let mut content = text(&result.content);
        for data in part::data(&result.content) {
            content += if content.is_empty() { "" } else { "\n" };
            content += match data {
                Ok(part) => {
                    self.attached.push(part);
                    "(data: see the next message)"
                }
                // The tool has run; its data must not stop the conversation.
                Err(_) => "(data omitted: unsupported type)",
            };
        }
        if content.is_empty() {
            content = result.state.as_str().into();
        }
        self.done.push(Turn::Tool { tool_call_id: result.tool_call_id.as_str(), content });
    }

    fn attach(&mut self) {
        if !self.attached.is_empty() {
            let content = Content::Parts(mem::take(&mut self.attached));
            self.done.push(Turn::User { content });
        }
    }
}

/// Returns the text blocks, joined; borrowed if there is only one.
pub(crate) fn text(blocks: &[ContentBlock]) -> Cow<'_, str> {
    join(blocks.iter().filter_map(ContentBlock::as_text))
}

fn thinking(blocks: &[ContentBlock]) -> Cow<'_, str> {
    join(blocks.iter().filter_map(|block| match block {
        ContentBlock::Thinking { thinking, .. } => Some(thinking.as_str()),
        _ => None,
    }))
}

fn join<'a>(mut texts: impl Iterator<Item = &'a str>) -> Cow<'a, str> {
    let first = Cow::Borrowed(texts.next().unwrap_or_default());
    texts.fold(first, |joined, text| joined + text)
}

fn call(call: &ToolCall) -> Call<'_> {
    Call {
        id: call.id.as_str(),
        kind: "function",
        function: Function { name: &call.name, arguments: Arguments::of(&call.arguments).as_text() },
        extra_content: call.opaque.get("extra_content"),
    }
}
