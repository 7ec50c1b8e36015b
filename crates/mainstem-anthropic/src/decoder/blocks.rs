//! The content blocks of a response.

use std::mem;

use mainstem_message::Opaque;
use mainstem_model::ModelDelta;
use serde_json::{Map, Value};

use super::Deltas;
use crate::{
    event::{self, Delta},
    opaque::{REDACTED, SERVER, SIGNATURE, store},
};

/// The open blocks, by the vendor's index, and the number of tool calls.
#[derive(Default)]
pub(super) struct Blocks {
    open: Vec<(u64, Block)>,
    calls: usize,
}

enum Block {
    Text,
    Thinking {
        signature: String,
    },
    Redacted {
        data: String,
    },
    /// With an input that came whole, unless pieces follow.
    Call {
        slot: usize,
        input: Option<String>,
    },
    /// Of one of the vendor's own tools, with the pieces of its input.
    Server {
        block: Map<String, Value>,
        input: String,
    },
    Ignored,
}

impl Blocks {
    /// Returns `true` if there is a tool call.
    pub(super) fn any_calls(&self) -> bool {
        self.calls > 0
    }

    /// Begins a block, perhaps with content.
    pub(super) fn start(&mut self, index: u64, block: event::Block, deltas: &mut Deltas) {
        self.stop(index, deltas);
        let block = match block {
            event::Block::Text { text } => {
                push(text, ModelDelta::Text, deltas);
                Block::Text
            }
            event::Block::Thinking { thinking, signature } => {
                push(thinking, ModelDelta::Thinking, deltas);
                Block::Thinking { signature }
            }
            event::Block::RedactedThinking { data } => Block::Redacted { data },
            event::Block::ToolUse { id, name, input } => {
                let slot = self.calls;
                self.calls += 1;
                let id = id.filter(|id| !id.is_empty()).map(Into::into);
                deltas.push_back(ModelDelta::CallStart { slot, id, name });
                Block::Call { slot, input: whole(input) }
            }
            event::Block::Server(block) => Block::Server { block, input: String::new() },
            event::Block::Other => Block::Ignored,
        };
        self.open.push((index, block));
    }

    /// Continues a block. If a server has not begun the block, the delta tells text from thinking.
    pub(super) fn delta(&mut self, index: u64, delta: Delta<'_>, deltas: &mut Deltas) {
        let block = self.open.iter_mut().find(|(open, _)| *open == index).map(|(_, block)| block);
        match (delta, block) {
            (Delta::Text { text }, None | Some(Block::Text)) => {
                push(text.into_owned(), ModelDelta::Text, deltas);
            }
            (Delta::Thinking { thinking }, None | Some(Block::Thinking { .. })) => {
                push(thinking.into_owned(), ModelDelta::Thinking, deltas);
            }
            (Delta::Signature { signature }, Some(Block::Thinking { signature: kept })) => *kept = signature,
            (Delta::InputJson { partial_json }, Some(Block::Server { input, .. })) => {
                input.push_str(&partial_json);
            }
            (Delta::InputJson { partial_json }, Some(Block::Call { slot, input })) => {
                if !partial_json.is_empty() {
                    *input = None;
                }
                let slot = *slot;
                push(partial_json.into_owned(), |delta| ModelDelta::CallArguments { slot, delta }, deltas);
            }
            _ => {}
        }
    }

    /// Ends a block; ignores one that is not open.
    pub(super) fn stop(&mut self, index: u64, deltas: &mut Deltas) {
        if let Some(at) = self.open.iter().position(|(open, _)| *open == index) {
            self.open.remove(at).1.end(deltas);
        }
    }

    /// Ends all blocks.
    pub(super) fn end(&mut self, deltas: &mut Deltas) {
        mem::take(&mut self.open).into_iter().for_each(|(_, block)| block.end(deltas));
    }
}

impl Block {
    fn end(self, deltas: &mut Deltas) {
        let opaque = match self {
            Self::Text => Opaque::new(),
            Self::Thinking { signature } => store(SIGNATURE, &signature),
            Self::Redacted { data } => store(REDACTED, &data),
            Self::Call { slot, input } => {
                push(input.unwrap_or_default(), |delta| ModelDelta::CallArguments { slot, delta }, deltas);
                deltas.push_back(ModelDelta::CallEnd { slot, opaque: Opaque::new() });
                return;
            }
            Self::Server { mut block, input } => {
                if let Ok(input) = serde_json::from_str(&input) {
                    block.insert("input".to_owned(), input);
                }
                store(SERVER, &Value::Object(block).to_string())
            }
            Self::Ignored => return,
        };
        deltas.push_back(ModelDelta::BlockEnd { opaque });
    }
}

/// Returns a delta of a text, unless it is empty.
fn push(text: String, delta: impl FnOnce(String) -> ModelDelta, deltas: &mut Deltas) {
    if !text.is_empty() {
        deltas.push_back(delta(text));
    }
}

/// Returns an input that came whole; in a stream it is an empty object at first.
fn whole(input: Value) -> Option<String> {
    match input {
        Value::Null => None,
        Value::Object(fields) if fields.is_empty() => None,
        Value::String(json) => Some(json),
        input => Some(input.to_string()),
    }
}
