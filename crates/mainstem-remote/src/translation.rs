//! What another protocol says of an invocation, as lawful events. Pure.

use std::{collections::HashSet, mem, sync::Arc};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use mainstem_event::{
    Discarded, EventKind, EventSource, Outcome, Rollup,
    fold::{BlockKind as Block, RecordedInvocation},
};
use mainstem_message::{
    BlockId, ContentBlock, Failure, Message, Role, StopReason, ToolCall, ToolCallId, ToolState, Usage,
};
use serde_json::Value;

use crate::RemoteEvent;

/// The result of a call for which the remote sent none.
const NO_RESULT: &str = "the remote sent no result of this call";

/// The text in place of the answer of an agent that succeeds and says nothing, where the protocol
/// allows that.
pub(crate) const NO_ANSWER: &str = "(no answer)";

/// Writes the events of one invocation from what another protocol says of it: a protocol calls the
/// methods in the order in which it hears, and the events keep the laws.
///
/// Blocks and model calls begin and end as they are needed; a result of a call that was not
/// announced announces it; a call without a result gets one when the next answer begins.
///
/// ```
/// use mainstem_event::Outcome;
/// use mainstem_remote::Translation;
///
/// let mut agent = Translation::new("far-model");
/// agent.start("far", Vec::new());
/// agent.text("Paris has ");
/// agent.text("309 stations.");
/// agent.end(Outcome::Success, None);
/// let events = agent.take();
/// let kinds: Vec<_> = events.iter().map(|event| event.kind.name()).collect();
/// assert_eq!(kinds.join(" "), "AGENT_START MODEL_CALL_START TEXT_BLOCK_START TEXT_BLOCK_DELTA \
///     TEXT_BLOCK_DELTA TEXT_BLOCK_END MODEL_CALL_END AGENT_END");
/// ```
#[derive(Debug)]
pub struct Translation {
    source: Option<Arc<EventSource>>,
    model: Arc<str>,
    events: Vec<RemoteEvent>,
    /// The open block.
    block: Option<(BlockId, Block)>,
    blocks: u32,
    model_calls: u32,
    is_model_called: bool,
    /// The usage of the open model call, or of the next.
    usage: Option<Usage>,
    /// The calls of the present answer.
    calls: Vec<Call>,
    /// What the present answer has said.
    attempt: Discarded,
    /// The calls that have a result, or were taken back.
    answered: HashSet<ToolCallId>,
    is_over: bool,
}

#[derive(Debug)]
struct Call {
    id: ToolCallId,
    name: Arc<str>,
    arguments: String,
    stage: Stage,
    /// How many bytes of its result are recorded, which the remote repeats.
    recorded: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Calling,
    Called,
    Running,
}

impl Translation {
    /// Creates the translation of the agent that was asked, whose model calls have this name.
    pub fn new(model: impl Into<Arc<str>>) -> Self {
        Self {
            source: None,
            model: model.into(),
            events: Vec::new(),
            block: None,
            blocks: 0,
            model_calls: 0,
            is_model_called: false,
            usage: None,
            calls: Vec::new(),
            attempt: Discarded::default(),
            answered: HashSet::new(),
            is_over: false,
        }
    }

    /// Creates the translation of the agent that was asked, in a turn that another process has
    /// begun: it goes on behind what is recorded, with new ids. The open model call begins again,
    /// and calls without a result still wait for it.
    pub fn recorded(model: impl Into<Arc<str>>, own: &RecordedInvocation) -> Self {
        let parts = &own.parts;
        let call = |(call, is_running): (&ToolCall, bool)| Call {
            id: call.id.clone(),
            name: call.name.as_str().into(),
            arguments: call.arguments.clone(),
            stage: if is_running { Stage::Running } else { Stage::Called },
            recorded: own.transcript.result_bytes(&call.id),
        };
        let calls: Vec<_> = own.open_calls().map(call).collect();
        let is_open = |id: &ToolCallId| calls.iter().any(|call| call.id == *id);
        let said = parts.attempt.iter().flat_map(|said| &said.tool_calls);
        let answered = parts.calls.keys().chain(said).filter(|id| !is_open(id)).cloned().collect();
        Self {
            blocks: parts.blocks,
            model_calls: parts.model_calls,
            is_model_called: parts.attempt.is_some(),
            answered,
            calls,
            ..Self::new(model)
        }
    }

    /// Sets the agent below the one that was asked that the events are of.
    #[must_use]
    pub fn with_source(mut self, source: Arc<EventSource>) -> Self {
        self.source = Some(source);
        self
    }

    /// Begins the invocation. The agent that was asked needs no call: its beginning is known.
    pub fn start(&mut self, name: &str, input: Vec<Arc<Message>>) {
        self.emit(EventKind::agent_start(name, Role::Assistant, input));
    }

    /// Continues the text of the answer.
    pub fn text(&mut self, delta: &str) {
        self.said(Block::Text, delta);
    }

    /// Continues the agent's thinking.
    pub fn thinking(&mut self, delta: &str) {
        self.said(Block::Thinking, delta);
    }

    /// Continues an image, sound or file of the answer, as base64.
    pub fn data(&mut self, media_type: &str, delta: &str) {
        if delta.is_empty() || self.is_over {
            return;
        }
        let delta = delta.to_owned();
        let block_id = self.open(Block::Data, media_type);
        self.emit(EventKind::DataBlockDelta { block_id, delta });
    }

    /// Names the model of the next answers.
    pub fn set_model(&mut self, name: &str) {
        if *self.model != *name {
            self.model = name.into();
        }
    }

    /// Ends the open block, so that the next text begins another.
    pub fn end_block(&mut self) {
        if let Some((block_id, block)) = self.block.take() {
            self.emit(block.end(block_id, Default::default()));
        }
    }

    /// Begins a call of a tool; nothing if the call is known.
    pub fn call(&mut self, id: &ToolCallId, name: &str) {
        if self.is_over || self.place(id).is_some() || self.answered.contains(id) {
            return;
        }
        self.begin_answer();
        self.end_block();
        let name: Arc<str> = name.into();
        self.emit(EventKind::ToolCallStart { tool_call_id: id.clone(), tool_call_name: name.clone() });
        self.attempt.tool_calls.push(id.clone());
        let (id, arguments, stage) = (id.clone(), String::new(), Stage::Calling);
        self.calls.push(Call { id, name, arguments, stage, recorded: 0 });
    }

    /// Continues the arguments of a call, which are JSON; nothing if the call is not open.
    pub fn arguments(&mut self, id: &ToolCallId, delta: &str) {
        let open = self.calls.iter_mut().find(|call| call.id == *id && call.stage == Stage::Calling);
        if let Some(call) = open.filter(|_| !delta.is_empty()) {
            call.arguments.push_str(delta);
            self.emit(EventKind::ToolCallDelta { tool_call_id: id.clone(), delta: delta.to_owned() });
        }
    }

    /// Returns `true` if the arguments of a call have not begun.
    pub fn lacks_arguments(&self, id: &ToolCallId) -> bool {
        self.calls.iter().any(|call| call.id == *id && call.arguments.is_empty())
    }

    /// Returns `true` if a call is open whose arguments have not begun.
    pub fn awaits_arguments(&self) -> bool {
        self.calls.iter().any(|call| call.stage == Stage::Calling && call.arguments.is_empty())
    }

    /// Returns `true` if this call has begun and has no result yet.
    pub fn is_open(&self, id: &ToolCallId) -> bool {
        self.place(id).is_some()
    }

    /// Returns `true` if a call has no result yet.
    pub fn has_open_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Returns `true` within a model call.
    pub fn is_answering(&self) -> bool {
        self.is_model_called
    }

    /// Ends the arguments of a call; nothing if they have ended.
    pub fn end_call(&mut self, id: &ToolCallId) {
        let open = self.calls.iter_mut().find(|call| call.id == *id && call.stage == Stage::Calling);
        let Some(call) = open else { return };
        call.stage = Stage::Called;
        let tool_call_name = call.name.clone();
        let opaque = Default::default();
        self.emit(EventKind::ToolCallEnd {
            tool_call_id: id.clone(),
            tool_call_name,
            opaque,
            discarded: false,
        });
    }

    /// Begins the result of a call; `name` is that of the tool, in case the call was not announced.
    pub fn begin_result(&mut self, id: &ToolCallId, name: &str) {
        if self.is_over || self.answered.contains(id) {
            return;
        }
        self.call(id, name);
        self.end_answer();
        let call = self.calls.iter_mut().find(|call| call.id == *id && call.stage == Stage::Called);
        let Some(call) = call else { return };
        call.stage = Stage::Running;
        let input = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
        let begun = EventKind::tool_result_start(id.clone(), call.name.clone(), input);
        self.emit(begun);
    }

    /// Continues the result of a call; nothing if it has not begun.
    pub fn result(&mut self, id: &ToolCallId, delta: &str) {
        let running = self.calls.iter_mut().find(|call| call.id == *id && call.stage == Stage::Running);
        let Some(call) = running else { return };
        let repeated = call.recorded.min(delta.len());
        call.recorded -= repeated;
        let delta = delta.get(repeated..).unwrap_or(delta).to_owned();
        if !delta.is_empty() {
            self.emit(EventKind::ToolResultTextDelta { tool_call_id: id.clone(), delta });
        }
    }

    /// Continues the result of a call with data; nothing if it has not begun.
    pub fn result_data(&mut self, id: &ToolCallId, data: ContentBlock) {
        if self.place(id).is_some_and(|place| self.calls[place].stage == Stage::Running) {
            self.emit(EventKind::ToolResultDataDelta { tool_call_id: id.clone(), data: Box::new(data) });
        }
    }

    /// Ends the result of a call; nothing if it has not begun.
    pub fn end_result(&mut self, id: &ToolCallId, state: ToolState) {
        let Some(place) = self.place(id).filter(|place| self.calls[*place].stage == Stage::Running) else {
            return;
        };
        let Call { id, name, .. } = self.calls.remove(place);
        self.emit(EventKind::tool_result_end(id.clone(), name, state, 0));
        self.answered.insert(id);
    }

    /// Adds a file to the answer, in one piece.
    pub fn file(&mut self, media_type: &str, bytes: &[u8]) {
        if self.is_over {
            return;
        }
        self.begin_answer();
        self.end_block();
        self.blocks += 1;
        let block_id = BlockId::from_lossy(format!("block-{}", self.blocks));
        let (media_type, opaque) = (media_type.to_owned(), Default::default());
        self.attempt.blocks.push(block_id.clone());
        self.emit(EventKind::DataBlockStart { block_id: block_id.clone(), media_type });
        self.emit(EventKind::DataBlockDelta {
            block_id: block_id.clone(),
            delta: BASE64_STANDARD.encode(bytes),
        });
        self.emit(EventKind::DataBlockEnd { block_id, opaque, discarded: false });
    }

    /// Adds what model calls have used: of the open one, or else of the next.
    pub fn usage(&mut self, usage: Usage) {
        self.usage = Some(self.usage.unwrap_or_default() + usage);
    }

    /// Adds an event that belongs to the invocation and to no block or call. A `MODEL_RETRY` or
    /// `MODEL_FALLBACK` that takes something back is as in [`take_back`](Self::take_back).
    pub fn other(&mut self, kind: EventKind) {
        if kind.taken_back().is_some() { self.take_back(kind) } else { self.emit(kind) }
    }

    /// Adds an event of the invocation with its [id](RemoteEvent::id) at the remote.
    pub fn other_with_id(&mut self, kind: EventKind, id: impl Into<String>) {
        if !self.is_over {
            self.events.push(RemoteEvent::new(kind).with_source(self.source.clone()).with_id(id));
        }
    }

    /// Takes back what the present answer has said, because the remote gives it again. `kind` is
    /// the `MODEL_RETRY` or `MODEL_FALLBACK` that says why; it gets the ids. A call that is taken
    /// back and then goes on under the same id is passed over.
    pub fn take_back(&mut self, kind: EventKind) {
        if self.is_over {
            return;
        }
        if !self.is_model_called {
            return self.emit(kind.with_taken_back(Discarded::default()));
        }
        if let Some((block_id, block)) = self.block.take() {
            self.emit(block.end(block_id, Default::default()).with_discarded(true));
        }
        for Call { id, name: tool_call_name, stage, .. } in mem::take(&mut self.calls) {
            if stage == Stage::Calling {
                let (tool_call_id, opaque) = (id.clone(), Default::default());
                self.emit(EventKind::ToolCallEnd { tool_call_id, tool_call_name, opaque, discarded: true });
            }
            self.answered.insert(id);
        }
        let said = mem::take(&mut self.attempt);
        self.emit(kind.with_taken_back(said));
    }

    /// Returns how many blocks and calls the present answer has.
    pub(crate) fn parts_of_answer(&self) -> usize {
        if self.is_model_called { self.attempt.blocks.len() + self.attempt.tool_calls.len() } else { 0 }
    }

    /// Ends the invocation, once: what is open ends first.
    pub fn end(&mut self, outcome: Outcome, error: Option<Failure>) {
        if self.is_over {
            return;
        }
        if self.usage.is_some() {
            self.begin_answer();
        }
        self.end_answer();
        self.interrupt();
        self.emit(EventKind::agent_end(outcome, Rollup::default(), 0).with_error(error));
        self.is_over = true;
    }

    /// Ends the open model call, unless calls of its answer wait for their results: parallel
    /// answers share a model call.
    pub(crate) fn end_model_call(&mut self) {
        self.end_block();
        if self.calls.is_empty() {
            self.end_answer();
        }
    }

    /// Returns the calls without a result.
    pub(crate) fn open_calls(&self) -> impl Iterator<Item = ToolCall> {
        self.calls.iter().map(|call| ToolCall::new(call.id.clone(), &*call.name, &*call.arguments))
    }

    /// Returns `true` if the invocation has ended.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes the events so far.
    pub fn take(&mut self) -> Vec<RemoteEvent> {
        mem::take(&mut self.events)
    }

    fn emit(&mut self, kind: EventKind) {
        if !self.is_over {
            self.events.push(RemoteEvent::new(kind).with_source(self.source.clone()));
        }
    }

    fn place(&self, id: &ToolCallId) -> Option<usize> {
        self.calls.iter().position(|call| call.id == *id)
    }

    fn said(&mut self, block: Block, delta: &str) {
        if delta.is_empty() || self.is_over {
            return;
        }
        let delta = delta.to_owned();
        let block_id = self.open(block, "");
        self.emit(match block {
            Block::Thinking => EventKind::ThinkingBlockDelta { block_id, delta },
            Block::Text | Block::Data => EventKind::TextBlockDelta { block_id, delta },
        });
    }

    /// Returns the open block of this kind, which begins if another is open.
    fn open(&mut self, block: Block, media_type: &str) -> BlockId {
        if let Some((id, open)) = &self.block
            && *open == block
        {
            return id.clone();
        }
        self.begin_answer();
        self.end_block();
        self.blocks += 1;
        let block_id = BlockId::from_lossy(format!("block-{}", self.blocks));
        self.block = Some((block_id.clone(), block));
        self.attempt.blocks.push(block_id.clone());
        self.emit(match block {
            Block::Text => EventKind::TextBlockStart { block_id: block_id.clone() },
            Block::Thinking => EventKind::ThinkingBlockStart { block_id: block_id.clone() },
            Block::Data => {
                EventKind::DataBlockStart { block_id: block_id.clone(), media_type: media_type.to_owned() }
            }
        });
        block_id
    }

    /// Begins a model call, unless one is open. The calls of the answer before get their results.
    fn begin_answer(&mut self) {
        if self.is_model_called {
            return;
        }
        self.interrupt();
        self.is_model_called = true;
        self.attempt = Discarded::default();
        self.model_calls += 1;
        self.emit(EventKind::model_call_start(self.model.clone(), self.model_calls));
    }

    /// Ends the open model call: what follows are the results of its calls, or requests about them.
    pub fn end_answer(&mut self) {
        self.end_block();
        let open: Vec<_> = self.calls.iter().map(|call| call.id.clone()).collect();
        open.iter().for_each(|id| self.end_call(id));
        if !mem::replace(&mut self.is_model_called, false) {
            return;
        }
        let reason = if self.calls.is_empty() { StopReason::Stop } else { StopReason::ToolCalls };
        let usage = self.usage.take();
        self.emit(EventKind::model_call_end(reason, 0).with_usage(usage));
    }

    /// Ends the results of the calls that have none.
    fn interrupt(&mut self) {
        let open: Vec<_> = self.calls.iter().map(|call| (call.id.clone(), call.name.clone())).collect();
        for (id, name) in open {
            if self.place(&id).is_some_and(|place| self.calls[place].stage != Stage::Running) {
                self.begin_result(&id, &name);
                self.result(&id, NO_RESULT);
            }
            self.end_result(&id, ToolState::Interrupted);
        }
    }
}

#[cfg(test)]
mod tests;
