//! The content blocks of a response.

use std::mem;

use mainstem_message::Opaque;
use mainstem_model::ModelDelta;
use serde_json::{Map, Value};

use super::Output;
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
    pub(super) fn start(&mut self, index: u64, block: event::Block, out: &mut Output<'_>) {
        self.stop(index, out);
        let block = match block {
            event::Block::Text { text } => {
                out.push(text.into(), ModelDelta::Text);
                Block::Text
            }
            event::Block::Thinking { thinking, signature } => {
                out.push(thinking.into(), ModelDelta::Thinking);
                Block::Thinking { signature }
            }
            event::Block::RedactedThinking { data } => Block::Redacted { data },
            event::Block::ToolUse { id, name, input } => {
                let slot = self.calls;
                self.calls += 1;
                let id = id.filter(|id| !id.is_empty()).map(Into::into);
                out.push_whole(ModelDelta::CallStart { slot, id, name });
                Block::Call { slot, input: whole(input) }
            }
            event::Block::Server(block) => Block::Server { block, input: String::new() },
            event::Block::Other => Block::Ignored,
        };
        self.open.push((index, block));
    }

    /// Continues a block. If a server has not begun the block, the delta tells text from thinking.
    pub(super) fn delta(&mut self, index: u64, delta: Delta<'_>, out: &mut Output<'_>) {
        let block = self.open.iter_mut().find(|(open, _)| *open == index).map(|(_, block)| block);
        match (delta, block) {
            (Delta::Text { text }, None | Some(Block::Text)) => {
                out.push(text, ModelDelta::Text);
            }
            (Delta::Thinking { thinking }, None | Some(Block::Thinking { .. })) => {
                out.push(thinking, ModelDelta::Thinking);
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
                out.push(partial_json, |delta| ModelDelta::CallArguments { slot, delta });
            }
            _ => {}
        }
    }

    /// Ends a block; ignores one that is not open.
    pub(super) fn stop(&mut self, index: u64, out: &mut Output<'_>) {
        if let Some(at) = self.open.iter().position(|(open, _)| *open == index) {
            self.open.remove(at).1.end(out);
        }
    }

    /// Ends all blocks.
    pub(super) fn end(&mut self, out: &mut Output<'_>) {
        mem::take(&mut self.open).into_iter().for_each(|(_, block)| block.end(out));
    }
}

impl Block {
    fn end(self, out: &mut Output<'_>) {
        let opaque = match self {
            Self::Text => Opaque::new(),
            Self::Thinking { signature } => store(SIGNATURE, &signature),
            Self::Redacted { data } => store(REDACTED, &data),
            Self::Call { slot, input } => {
                out.push(input.unwrap_or_default().into(), |delta| ModelDelta::CallArguments { slot, delta });
                out.push_whole(ModelDelta::CallEnd { slot, opaque: Opaque::new() });
                return;
            }
            Self::Server { mut block, input } => {
                if let Ok(input) = serde_json::from_str(&input) {
                    block.insert("input".to_owned(), input);
                }
                if let Some(call) = call(&block) {
                    out.push_whole(call);
                }
                store(SERVER, &Value::Object(block).to_string())
            }
            Self::Ignored => return,
        };
        out.push_whole(ModelDelta::BlockEnd { opaque });
    }
}

/// Returns the report of a call of one of the vendor's own tools; `None` for a result.
fn call(block: &Map<String, Value>) -> Option<ModelDelta> {
    let name = block.get("name")?.as_str()?.to_owned();
    Some(ModelDelta::ServerToolCall { name, input: block.get("input")?.clone() })
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
