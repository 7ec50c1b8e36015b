//! The conversation in the vendor's form: instructions, then alternating turns of the user and the
//! model.

use std::{borrow::Cow, collections::HashSet, mem, sync::Arc};

use mainstem_message::{ContentBlock, Message, Role};
use mainstem_model::ModelRequest;
use serde::{Serialize, Serializer};

use super::part::{Block, Unsupported, assistant, attached, joined, result, user};
use crate::caching::{Breakpoint, marked};

pub(super) struct Conversation<'a> {
    pub(super) system: Option<Cow<'a, str>>,
    pub(super) turns: Vec<Turn<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Turn<'a> {
    role: Role,
    content: Content<'a>,
}

#[derive(Debug)]
struct Content<'a> {
    blocks: Vec<Block<'a>>,
    /// At the end of the last block.
    breakpoint: Option<Breakpoint>,
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        marked(serializer, self.blocks.iter(), self.breakpoint)
    }
}

/// Returns the instructions and all messages. Fails with what the API has no form for, and its
/// place.
pub(super) fn conversation(
    request: &ModelRequest,
    breakpoint: Option<Breakpoint>,
) -> Result<Conversation<'_>, String> {
    let is_system = |message: &&Arc<Message>| message.role == Role::System;
    let leading = request.messages.iter().take_while(is_system).count();
    let mut turns = Turns { done: Vec::new(), open: Turn::new(Role::User) };
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
    let mut turns = turns.finish();
    drop_unanswered(&mut turns);
    mark(&mut turns, breakpoint);
    Ok(Conversation { system: instructions(request, leading), turns })
}

/// Marks the ends of the last two turns of the user's: the end of this prompt, and the end of the
/// previous request's, which the cache holds. The vendor looks for that one by itself, but only
/// over 20 blocks; a turn with many calls has more.
fn mark(turns: &mut [Turn<'_>], breakpoint: Option<Breakpoint>) {
    for turn in turns.iter_mut().rev().filter(|turn| turn.role == Role::User).take(2) {
        turn.content.breakpoint = breakpoint;
    }
}

/// Drops calls of the vendor's own tools without results, which answers that were cut leave. The
/// API refuses them, except at the end of the conversation, where it goes on with them.
fn drop_unanswered(turns: &mut Vec<Turn<'_>>) {
    let blocks = turns.iter().flat_map(|turn| &turn.content.blocks);
    let answered: HashSet<_> = blocks.filter_map(Block::answers).map(str::to_owned).collect();
    let is_results = |turn: &Turn<'_>| turn.content.blocks.iter().all(Block::is_result);
    let results = turns.iter().rev().take_while(|turn| is_results(turn)).count();
    // The last turn of the model's, if only results of our tools follow it.
    let open = turns.len().checked_sub(results + 1).filter(|at| turns[*at].role == Role::Assistant);
    for (_, turn) in turns.iter_mut().enumerate().filter(|(at, _)| Some(*at) != open) {
        turn.content.blocks.retain(|block| block.server_call().is_none_or(|id| answered.contains(id)));
        turn.trim();
    }
    turns.retain(|turn| !turn.content.blocks.is_empty());
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
            let open = mem::replace(&mut self.open, Turn::new(role));
            self.done.extend(open.finish());
            // The turn between them was empty.
            if let Some(before) = self.done.pop_if(|turn| turn.role == role) {
                self.open = before;
            }
        }
        &mut self.open.content.blocks
    }

    fn finish(mut self) -> Vec<Turn<'a>> {
        self.done.extend(self.open.finish());
        self.done
    }
}

impl Turn<'_> {
    fn new(role: Role) -> Self {
        Self { role, content: Content { blocks: Vec::new(), breakpoint: None } }
    }

    /// Returns the turn, unless it is empty. The API refuses a turn of the model's that ends in
    /// thinking, as one does that was cut off.
    fn finish(mut self) -> Option<Self> {
        self.trim();
        (!self.content.blocks.is_empty()).then_some(self)
    }

    fn trim(&mut self) {
        while self.content.blocks.pop_if(|block| block.is_thinking()).is_some() {}
    }
}
