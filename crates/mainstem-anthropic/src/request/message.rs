//! The conversation in the vendor's form: instructions, then alternating turns of the user and the
//! model.

use std::{borrow::Cow, mem, sync::Arc};

use mainstem_message::{ContentBlock, Message, Role};
use mainstem_model::ModelRequest;
use serde::Serialize;

use super::part::{Block, Unsupported, assistant, attached, joined, result, user};

pub(super) struct Conversation<'a> {
    pub(super) system: Option<Cow<'a, str>>,
    pub(super) turns: Vec<Turn<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Turn<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

/// Returns the instructions and all messages. Fails with what the API has no form for, and its
/// place.
pub(super) fn conversation(request: &ModelRequest) -> Result<Conversation<'_>, String> {
    let is_system = |message: &&Arc<Message>| message.role == Role::System;
    let leading = request.messages.iter().take_while(is_system).count();
    let mut turns = Turns { done: Vec::new(), open: Turn { role: Role::User, content: Vec::new() } };
    for (number, message) in request.messages.iter().enumerate().skip(leading) {
        for (block, content) in message.content.iter().enumerate() {
            turns.add(message.role, content).map_err(|Unsupported(what)| {
                format!(
                    "has no form for {what}, block {} of message {}: it takes JPEG, PNG, GIF and WebP images and PDF files of the \
                     user's; send other data as text",
                    block + 1,
                    number + 1
                )
            })?;
        }
    }
    Ok(Conversation { system: instructions(request, leading), turns: turns.finish() })
}

/// Returns the instructions, with the system messages at the beginning of the conversation.
fn instructions(request: &ModelRequest, leading: usize) -> Option<Cow<'_, str>> {
    let system = request.system.iter().map(|system| Cow::Borrowed(&**system));
    let messages = request.messages.iter().take(leading).map(|message| joined(&message.content));
    let texts = system.chain(messages).filter(|text| !text.trim().is_empty());
    texts.reduce(|instructions, text| instructions + "\n\n" + text)
}

struct Turns<'a> {
    done: Vec<Turn<'a>>,
    open: Turn<'a>,
}

impl<'a> Turns<'a> {
    fn add(&mut self, role: Role, block: &'a ContentBlock) -> Result<(), Unsupported<'a>> {
        match (role, block) {
            (_, ContentBlock::ToolResult(answer)) => {
                // Results come first, directly after the calls that they answer.
                let content = self.content(Role::User);
                let results = content.partition_point(|block| matches!(block, Block::ToolResult { .. }));
                content.insert(results, result(answer));
                content.extend(attached(answer));
            }
            (Role::Assistant, block) => {
                if let Some(block) = assistant(block)? {
                    self.content(Role::Assistant).push(block);
                }
            }
            (Role::System, ContentBlock::Text { text, .. }) if !text.trim().is_empty() => {
                let text = format!("<system-reminder>\n{text}\n</system-reminder>").into();
                self.content(Role::User).push(Block::Text { text });
            }
            (Role::System, _) => {}
            (Role::User | Role::Tool, block) => {
                if let Some(block) = user(block)? {
                    self.content(Role::User).push(block);
                }
            }
        }
        Ok(())
    }

    /// Returns the content of the last turn, if it has this role, or of a new one: adjacent
    /// messages of one role are one turn.
    fn content(&mut self, role: Role) -> &mut Vec<Block<'a>> {
        if self.open.role != role {
            let open = mem::replace(&mut self.open, Turn { role, content: Vec::new() });
            self.done.extend(open.finish());
            // The turn between them was empty.
            if let Some(before) = self.done.pop_if(|turn| turn.role == role) {
                self.open = before;
            }
        }
        &mut self.open.content
    }

    fn finish(mut self) -> Vec<Turn<'a>> {
        self.done.extend(self.open.finish());
        self.done
    }
}

impl Turn<'_> {
    /// Returns the turn, unless it is empty. The API refuses a turn of the model's that ends in
    /// thinking, as one does that was cut off.
    fn finish(mut self) -> Option<Self> {
        while self.content.pop_if(|block| block.is_thinking()).is_some() {}
        (!self.content.is_empty()).then_some(self)
    }
}
