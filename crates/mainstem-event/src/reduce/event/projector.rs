//! The projection from v2 to v1.

use std::{collections::HashMap, sync::Arc};

use mainstem_message::{ContentBlock, Failure, Message, ReplyId, Role, ToolCallId, ToolResult, ToolState};

use super::{Event, EventType, StreamOptions};
use crate::{
    AgentEvent, EventKind,
    fold::{Transcript, append_text},
};

/// Turns [`AgentEvent`]s into v1 [`Event`]s, one at a time. Holds the messages of open invocations
/// only.
#[derive(Debug)]
pub struct Projector {
    options: StreamOptions,
    open: HashMap<ReplyId, State>,
}

#[derive(Debug)]
struct State {
    transcript: Transcript,
    /// The text so far of the open block.
    block: String,
    /// The output of each running tool so far.
    outputs: HashMap<ToolCallId, ToolResult>,
    summing_up: bool,
    has_result: bool,
}

/// The message of an event, and whether that is complete.
type Projected = Option<(EventType, Arc<Message>, bool)>;

impl Projector {
    /// Creates a projector with these options.
    pub fn new(options: StreamOptions) -> Self {
        Self { options, open: HashMap::new() }
    }

    /// Returns the v1 event of an event, if the options select one.
    pub fn push(&mut self, event: &AgentEvent) -> Option<Event> {
        let reply_id = event.reply_id()?;
        let state = self.open.entry(reply_id.clone()).or_insert_with(|| State::new(reply_id.clone()));
        let said = state.push(&event.kind, self.options.incremental);
        let failure = state.failure(&event.kind);
        if matches!(event.kind, EventKind::AgentEnd { .. }) {
            self.open.remove(reply_id);
        }
        let failed = || failure.is_some().then(|| (EventType::AgentResult, Arc::new(nothing_said()), true));
        let (kind, message, is_last) = said.or_else(failed)?;
        let source = event.origin.source.clone();
        self.options.wants(kind, is_last).then_some(Event { kind, message, is_last, error: failure, source })
    }
}

impl State {
    fn new(reply_id: ReplyId) -> Self {
        Self {
            transcript: Transcript::new(reply_id),
            block: String::new(),
            outputs: HashMap::new(),
            summing_up: false,
            has_result: false,
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "each kind has its place, so that a new one does not compile without"
    )]
    fn push(&mut self, kind: &EventKind, incremental: bool) -> Projected {
        use EventKind::*;
        let known = self.transcript.messages().len();
        self.transcript.apply(kind);
        match kind {
            TextBlockStart { .. } | ThinkingBlockStart { .. } => {
                self.block.clear();
                None
            }
            TextBlockDelta { delta, .. } => Some(self.piece(ContentBlock::text, delta, incremental)),
            ThinkingBlockDelta { delta, .. } => Some(self.piece(ContentBlock::thinking, delta, incremental)),
            ModelCallEnd { .. } => self.turn(known),
            ExceedMaxIters { .. } => {
                self.summing_up = true;
                None
            }
            ToolResultStart { tool_call_id, tool_call_name, .. } => {
                self.outputs.insert(tool_call_id.clone(), nothing_yet(tool_call_id, tool_call_name));
                None
            }
            ToolResultTextDelta { tool_call_id, delta } => {
                self.output(tool_call_id, incremental, |content| append_text(content, delta))
            }
            ToolResultDataDelta { tool_call_id, data } => {
                self.output(tool_call_id, incremental, |content| content.push((**data).clone()))
            }
            ToolResultEnd { tool_call_id, state, .. } => {
                let result = self.outputs.remove(tool_call_id)?;
                Some(answered(ToolResult { state: *state, ..result }, true))
            }
            HintBlock { hint, .. } => Some((EventType::Hint, Arc::new(Message::user(hint.clone())), true)),
            AgentResult { result } => {
                self.has_result = true;
                Some((EventType::AgentResult, result.clone(), true))
            }
            ModelRetry { error, .. } | ModelFallback { reason: error, .. } => {
                let is_taken_back = kind.taken_back().is_some();
                is_taken_back.then(|| (EventType::Hint, Arc::new(taken_back(error)), true))
            }
            AgentStart { .. }
            | AgentEnd { .. }
            | ModelCallStart { .. }
            | RateLimitWait { .. }
            | RateLimitPassed { .. }
            | TextBlockEnd { .. }
            | ThinkingBlockEnd { .. }
            | DataBlockStart { .. }
            | DataBlockDelta { .. }
            | DataBlockEnd { .. }
            | ToolCallStart { .. }
            | ToolCallDelta { .. }
            | ToolCallEnd { .. }
            | RequireUserConfirm { .. }
            | UserConfirmResult { .. }
            | RequireExternalExecution { .. }
            | ExternalExecutionResult { .. }
            | AllToolsDenied { .. }
            | StreamFallback { .. } => None,
            TaskUpdated { .. }
            | MessageSent { .. }
            | AgentClosed { .. }
            | PlanModeChanged { .. }
            | StateCheckpoint { .. }
            | RunCancelled { .. }
            | Gap { .. }
            | Custom { .. }
            | Unknown { .. } => None,
        }
    }

    /// Returns the failure of an invocation that ends without a result.
    fn failure(&self, kind: &EventKind) -> Option<Failure> {
        let EventKind::AgentEnd { outcome, error, .. } = kind else { return None };
        let unnamed = || Failure::new(outcome.as_str(), "the agent ended without an answer");
        (!self.has_result).then(|| error.clone().unwrap_or_else(unnamed))
    }

    fn reasoning(&self) -> EventType {
        if self.summing_up { EventType::Summary } else { EventType::Reasoning }
    }

    fn piece(
        &mut self,
        block: fn(String) -> ContentBlock,
        delta: &str,
        incremental: bool,
    ) -> (EventType, Arc<Message>, bool) {
        if incremental {
            self.block.clear();
        }
        self.block.push_str(delta);
        let content = vec![block(self.block.clone())];
        (self.reasoning(), Arc::new(Message::new(Role::Assistant, content)), false)
    }

    /// Returns the complete message of the model call that has just ended, if it has one: the
    /// message is new then.
    fn turn(&self, known: usize) -> Projected {
        let message = self.transcript.messages().get(known)?;
        Some((self.reasoning(), message.clone(), true))
    }

    /// Returns a piece of a tool's output, or the output so far.
    fn output(
        &mut self,
        id: &ToolCallId,
        incremental: bool,
        add: impl Fn(&mut Vec<ContentBlock>),
    ) -> Projected {
        let result = self.outputs.get_mut(id)?;
        add(&mut result.content);
        if !incremental {
            return Some(answered(result.clone(), false));
        }
        let mut piece = nothing_yet(id, &result.name);
        add(&mut piece.content);
        Some(answered(piece, false))
    }
}

/// Returns the message that takes back what the model call has said so far.
fn taken_back(error: &Failure) -> Message {
    Message::user(format!("the answer was cut and begins again; what it said is taken back ({error})"))
}

fn nothing_said() -> Message {
    Message::new(Role::Assistant, Vec::new())
}

fn nothing_yet(id: &ToolCallId, name: &str) -> ToolResult {
    let (tool_call_id, name) = (id.clone(), name.to_owned());
    ToolResult { tool_call_id, name, content: Vec::new(), state: ToolState::Running }
}

fn answered(result: ToolResult, is_last: bool) -> (EventType, Arc<Message>, bool) {
    let message = Message::new(Role::Tool, vec![ContentBlock::ToolResult(result)]);
    (EventType::ToolResult, Arc::new(message), is_last)
}
