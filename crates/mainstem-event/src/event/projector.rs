//! The fold from v2 to v1.

use std::{collections::HashMap, sync::Arc};

use mainstem_message::{ContentBlock, Message, ReplyId, Role, ToolResult, ToolState};

use super::{Event, EventType, StreamOptions};
use crate::{AgentEvent, EventKind, fold::Transcript};

/// Turns [`AgentEvent`]s into v1 [`Event`]s, one at a time. Holds the text of open messages, and nothing of finished invocations.
#[derive(Debug)]
pub struct Projector {
    options: StreamOptions,
    open: HashMap<ReplyId, State>,
}

#[derive(Debug)]
struct State {
    transcript: Transcript,
    /// The text so far of the open block, and of each tool's output.
    block: String,
    outputs: HashMap<String, (String, String)>,
    summing_up: bool,
}

impl Projector {
    /// With these options.
    pub fn new(options: StreamOptions) -> Self {
        Self { options, open: HashMap::new() }
    }

    /// The v1 events that an event brings: none, one, or rarely two.
    pub fn push(&mut self, event: &AgentEvent) -> Vec<Event> {
        let Some(reply_id) = event.reply_id() else { return Vec::new() };
        let state = self.open.entry(reply_id.clone()).or_insert_with(|| State {
            transcript: Transcript::new(reply_id.clone()),
            block: String::new(),
            outputs: HashMap::new(),
            summing_up: false,
        });
        state.transcript.apply(&event.kind);
        let made = state.project(&event.kind, self.options.incremental);
        if matches!(event.kind, EventKind::AgentEnd { .. }) {
            self.open.remove(reply_id);
        }
        made.into_iter()
            .filter(|(kind, _, is_last)| self.options.wants(*kind, *is_last))
            .map(|(kind, message, is_last)| Event {
                kind,
                message,
                is_last,
                source: event.origin.source.clone(),
            })
            .collect()
    }
}

type Made = Option<(EventType, Arc<Message>, bool)>;

impl State {
    fn project(&mut self, kind: &EventKind, incremental: bool) -> Made {
        use EventKind::*;
        match kind {
            TextBlockDelta { delta, .. } => {
                let text = so_far(&mut self.block, delta, incremental);
                self.piece(ContentBlock::text(text))
            }
            ThinkingBlockDelta { delta, .. } => {
                let text = so_far(&mut self.block, delta, incremental);
                self.piece(ContentBlock::thinking(text))
            }
            TextBlockStart { .. } | ThinkingBlockStart { .. } => {
                self.block.clear();
                None
            }
            ModelCallEnd { .. } => self.turn(),
            ExceedMaxIters { .. } => {
                self.summing_up = true;
                None
            }
            ToolResultStart { tool_call_id, tool_call_name, .. } => {
                let output = (tool_call_name.to_string(), String::new());
                self.outputs.insert(tool_call_id.to_string(), output);
                None
            }
            ToolResultTextDelta { tool_call_id, delta } => {
                let (name, output) = self.outputs.get_mut(tool_call_id.as_str())?;
                output.push_str(delta);
                let text = if incremental { delta.clone() } else { output.clone() };
                Some((
                    EventType::ToolResult,
                    result(tool_call_id.as_str(), name, text, ToolState::Running),
                    false,
                ))
            }
            ToolResultEnd { tool_call_id, state, .. } => {
                let (name, text) = self.outputs.remove(tool_call_id.as_str())?;
                Some((EventType::ToolResult, result(tool_call_id.as_str(), &name, text, *state), true))
            }
            HintBlock { hint, .. } => Some((EventType::Hint, Arc::new(Message::user(hint.clone())), true)),
            AgentResult { result } => Some((EventType::AgentResult, result.clone(), true)),
            _ => None,
        }
    }

    fn reasoning(&self) -> EventType {
        if self.summing_up { EventType::Summary } else { EventType::Reasoning }
    }

    fn piece(&self, block: ContentBlock) -> Made {
        Some((self.reasoning(), Arc::new(Message::new(Role::Assistant, vec![block])), false))
    }

    /// The complete message of the model call that just ended, if it said anything.
    fn turn(&self) -> Made {
        let message = self.transcript.messages().last()?;
        (message.role == Role::Assistant).then(|| (self.reasoning(), message.clone(), true))
    }
}

fn so_far(text: &mut String, delta: &str, incremental: bool) -> String {
    if incremental {
        return delta.to_owned();
    }
    text.push_str(delta);
    text.clone()
}

fn result(id: &str, name: &str, text: String, state: ToolState) -> Arc<Message> {
    let content = vec![ContentBlock::text(text)];
    let result = ToolResult { tool_call_id: id.into(), name: name.to_owned(), content, state };
    Arc::new(Message::new(Role::Tool, vec![ContentBlock::ToolResult(result)]))
}
