//! One invocation's conversation, event by event.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use mainstem_message::{
    BlockId, ContentBlock, DataSource, Message, MessageId, Opaque, ReplyId, Role, StopReason, ToolCall,
    ToolCallId, ToolState,
};

use super::{Results, results::Phase};
use crate::EventKind;

/// The messages of one invocation so far.
///
/// ```
/// use mainstem_event::{EventKind, fold::Transcript};
///
/// let mut transcript = Transcript::new("reply-1".parse()?);
/// for kind in EventKind::examples() {
///     transcript.apply(&kind);
/// }
/// assert_eq!(transcript.messages()[0].text(), "review this");
/// # Ok::<(), mainstem_message::IdError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Transcript {
    reply_id: ReplyId,
    messages: Vec<Arc<Message>>,
    /// Whether the messages are those of a checkpoint, and what was said since.
    is_whole: bool,
    /// How many messages are those of the checkpoint.
    replaced: usize,
    /// The calls in messages that a checkpoint has replaced.
    replaced_calls: HashSet<ToolCallId>,
    /// The incomplete answer.
    draft: Option<Message>,
    open: Option<Open>,
    open_calls: VecDeque<OpenCall>,
    /// The places in the draft of blocks and calls that ended as taken back.
    discarded: Vec<usize>,
    results: Results,
    answers: usize,
}

/// The open block, and its place in the draft.
#[derive(Clone, Debug)]
struct Open {
    kind: BlockKind,
    id: BlockId,
    place: usize,
}

/// An open call, and its place in the draft.
#[derive(Clone, Debug)]
struct OpenCall {
    id: ToolCallId,
    name: Arc<str>,
    place: usize,
}

/// The kind of a block; at most one block of an invocation is open at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a fourth sort would be a new kind of event")]
pub enum BlockKind {
    /// Prose.
    Text,
    /// Reasoning.
    Thinking,
    /// Bytes.
    Data,
}

impl Transcript {
    /// Creates an empty transcript; messages of the answer are named after the reply.
    pub fn new(reply_id: ReplyId) -> Self {
        Self {
            reply_id,
            messages: Vec::new(),
            is_whole: false,
            replaced: 0,
            replaced_calls: HashSet::new(),
            draft: None,
            open: None,
            open_calls: VecDeque::new(),
            discarded: Vec::new(),
            results: Results::default(),
            answers: 0,
        }
    }

    /// Returns the complete messages, the input first.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Returns the last complete answer of the model.
    pub fn last_answer(&self) -> Option<&Arc<Message>> {
        self.messages.iter().rev().find(|message| message.role == Role::Assistant)
    }

    /// Applies one event of the invocation. Events without messages (usage, retries …) change
    /// nothing; neither do events that are not valid here, because a fold must survive any file.
    pub fn apply(&mut self, kind: &EventKind) {
        use EventKind::*;
        match kind {
            TextBlockDelta { block_id, delta }
            | ThinkingBlockDelta { block_id, delta }
            | DataBlockDelta { block_id, delta } => self.extend(block_id, delta),
            ToolCallDelta { tool_call_id, delta } => self.extend_call(tool_call_id, delta),
            AgentStart { input, .. } => self.messages.extend(input.iter().cloned()),
            ModelCallStart { .. } => {
                self.finish_draft();
                self.draft = Some(self.new_message(Role::Assistant));
            }
            ModelCallEnd { .. } => self.finish_draft(),
            TextBlockStart { block_id } => self.open(BlockKind::Text, block_id, ContentBlock::text("")),
            ThinkingBlockStart { block_id } => {
                self.open(BlockKind::Thinking, block_id, ContentBlock::thinking(""));
            }
            DataBlockStart { block_id, media_type } => {
                self.open(BlockKind::Data, block_id, empty_data(media_type));
            }
            TextBlockEnd { block_id, opaque, discarded }
            | ThinkingBlockEnd { block_id, opaque, discarded }
            | DataBlockEnd { block_id, opaque, discarded } => self.close(block_id, opaque, *discarded),
            ToolCallStart { tool_call_id, tool_call_name } => self.open_call(tool_call_id, tool_call_name),
            ToolCallEnd { tool_call_id, opaque, discarded, .. } => {
                self.close_call(tool_call_id, opaque, *discarded);
            }
            ModelRetry { discarded, .. } | ModelFallback { discarded, .. } if !discarded.is_empty() => {
                self.take_back();
            }
            ToolResultStart { tool_call_id, .. } => self.results.start(tool_call_id),
            ToolResultTextDelta { tool_call_id, delta } => self.results.text(tool_call_id, delta),
            ToolResultDataDelta { tool_call_id, data } => self.results.data(tool_call_id, data),
            ToolResultEnd { tool_call_id, state, .. } => {
                self.results.end(tool_call_id, *state);
                self.finish_results();
            }
            HintBlock { hint, .. } => self.messages.push(Arc::new(Message::user(hint.clone()))),
            AgentResult { .. }
            | AgentEnd { .. }
            | RateLimitWait { .. }
            | RateLimitPassed { .. }
            | ModelRetry { .. }
            | ModelFallback { .. }
            | RequireUserConfirm { .. }
            | UserConfirmResult { .. }
            | RequireExternalExecution { .. }
            | ExternalExecutionResult { .. }
            | AllToolsDenied { .. }
            | ExceedMaxIters { .. }
            | StreamFallback { .. } => {}
            // Events of the session: see `Conversation`.
            TaskUpdated { .. }
            | MessageSent { .. }
            | AgentClosed { .. }
            | PlanModeChanged { .. }
            | StateCheckpoint { .. }
            | RunCancelled { .. }
            | Gap { .. }
            | Custom { .. }
            | Unknown { .. } => {}
        }
    }

    /// Removes the complete messages, which a checkpoint has replaced.
    pub fn forget(&mut self) {
        let calls = self.messages.iter().flat_map(|message| message.tool_calls());
        self.replaced_calls.extend(calls.map(|call| call.id.clone()));
        self.messages.clear();
        self.replaced = 0;
    }

    /// Replaces the complete messages with those of a checkpoint, which are the agent's whole
    /// conversation.
    pub fn replace(&mut self, conversation: Vec<Arc<Message>>) {
        self.forget();
        (self.replaced, self.is_whole) = (conversation.len(), true);
        self.messages = conversation;
    }

    /// Returns the complete messages of the invocation, or those since a checkpoint.
    pub fn latest_messages(&self) -> &[Arc<Message>] {
        self.messages.get(self.replaced..).unwrap_or_default()
    }

    /// Returns `true` if a checkpoint has replaced the messages: they are the agent's whole
    /// conversation then, with that of earlier turns.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns `true` if a complete message has a call of this id, or had it before a checkpoint.
    pub fn has_call(&self, id: &ToolCallId) -> bool {
        let has = |message: &Arc<Message>| message.tool_calls().any(|call| call.id == *id);
        self.replaced_calls.contains(id) || self.messages.iter().any(has)
    }

    /// Returns the event that closes what is open, innermost first; `None` if everything is closed.
    /// Applying each and calling this again closes an invocation that was cut: blocks and calls
    /// end, the model call ends for this reason, and calls without a result get one that says so.
    pub fn next_closing(&self, reason: StopReason) -> Option<EventKind> {
        // The process has ended between the ends of what it was about to take back.
        let is_discarding = !self.discarded.is_empty();
        if let Some(Open { kind, id, .. }) = &self.open {
            return Some(kind.end(id.clone(), Opaque::new()).with_discarded(is_discarding));
        }
        if let Some(OpenCall { id, name, .. }) = self.open_calls.front() {
            let (tool_call_id, tool_call_name) = (id.clone(), name.clone());
            let opaque = Opaque::new();
            let discarded = is_discarding;
            return Some(EventKind::ToolCallEnd { tool_call_id, tool_call_name, opaque, discarded });
        }
        if self.draft.is_some() {
            return Some(EventKind::model_call_end(reason, 0));
        }
        let (result, phase) = self.results.unfinished()?;
        let (tool_call_id, tool_call_name) = (result.tool_call_id.clone(), result.name.as_str().into());
        if phase == Phase::Called {
            let input = serde_json::Value::Null;
            return Some(EventKind::ToolResultStart { tool_call_id, tool_call_name, input });
        }
        if result.content.is_empty() {
            let delta = INTERRUPTED.to_owned();
            return Some(EventKind::ToolResultTextDelta { tool_call_id, delta });
        }
        let state = ToolState::Interrupted;
        Some(EventKind::ToolResultEnd { tool_call_id, tool_call_name, state, duration_ms: 0 })
    }

    /// Returns `true` if the tool of a call has begun.
    pub fn has_started(&self, call: &ToolCallId) -> bool {
        self.results.has_started(call)
    }

    /// Returns the number of bytes of text in an open call's result so far; 0 if it has none, or is
    /// complete.
    pub fn result_bytes(&self, call: &ToolCallId) -> usize {
        self.results.bytes(call)
    }

    /// Returns the open block.
    pub fn open_block(&self) -> Option<(BlockKind, &BlockId)> {
        self.open.as_ref().map(|open| (open.kind, &open.id))
    }

    fn new_message(&mut self, role: Role) -> Message {
        let id = [self.reply_id.as_str(), ".", itoa::Buffer::new().format(self.answers)].concat();
        self.answers += 1;
        Message::new(role, Vec::new()).with_id(MessageId::from_lossy(id))
    }

    fn push(&mut self, block: ContentBlock) {
        if let Some(draft) = &mut self.draft {
            draft.content.push(block);
        }
    }

    fn open(&mut self, kind: BlockKind, id: &BlockId, content: ContentBlock) {
        let place = self.draft.as_ref().map_or(0, |draft| draft.content.len());
        self.open = Some(Open { kind, id: id.clone(), place });
        self.push(content);
    }

    /// Returns the block of this id, if it is open.
    fn block(&mut self, id: &BlockId) -> Option<&mut ContentBlock> {
        let open = self.open.as_ref().filter(|open| open.id == *id)?;
        self.draft.as_mut()?.content.get_mut(open.place)
    }

    fn extend(&mut self, id: &BlockId, delta: &str) {
        if let Some(
            ContentBlock::Text { text, .. }
            | ContentBlock::Thinking { thinking: text, .. }
            | ContentBlock::Data { source: DataSource::Base64(text), .. },
        ) = self.block(id)
        {
            text.push_str(delta);
        }
    }

    fn close(&mut self, id: &BlockId, given: &Opaque, is_discarded: bool) {
        if let Some(
            ContentBlock::Text { opaque, .. }
            | ContentBlock::Thinking { opaque, .. }
            | ContentBlock::Data { opaque, .. },
        ) = self.block(id)
        {
            opaque.clone_from(given);
        }
        let closed = self.open.take_if(|open| open.id == *id);
        self.discarded.extend(closed.filter(|_| is_discarded).map(|closed| closed.place));
    }

    fn open_call(&mut self, id: &ToolCallId, name: &Arc<str>) {
        let place = self.draft.as_ref().map_or(0, |draft| draft.content.len());
        self.open_calls.push_back(OpenCall { id: id.clone(), name: name.clone(), place });
        self.push(ContentBlock::ToolCall(ToolCall::new(id.clone(), &**name, "")));
    }

    /// Searches from the end: a fragment belongs to the latest call, which also settles ids that a
    /// model gives twice.
    fn extend_call(&mut self, id: &ToolCallId, delta: &str) {
        let open = self.open_calls.iter().rfind(|open| open.id == *id).map(|open| open.place);
        if let Some(call) = open.and_then(|place| self.call_at(place, id)) {
            call.arguments.push_str(delta);
        }
    }

    /// Searches from the beginning: a batch ends in the order in which it began.
    fn close_call(&mut self, id: &ToolCallId, opaque: &Opaque, is_discarded: bool) {
        let place = self.open_calls.iter().position(|open| open.id == *id);
        let closed = place.and_then(|place| self.open_calls.remove(place));
        self.discarded.extend(closed.iter().filter(|_| is_discarded).map(|closed| closed.place));
        if let Some(call) = closed.and_then(|closed| self.call_at(closed.place, id)) {
            call.opaque.clone_from(opaque);
        }
    }

    fn call_at(&mut self, place: usize, id: &ToolCallId) -> Option<&mut ToolCall> {
        match self.draft.as_mut()?.content.get_mut(place)? {
            ContentBlock::ToolCall(call) if call.id == *id => Some(call),
            _ => None,
        }
    }

    /// Removes what the failed attempt of the open model call has said.
    fn take_back(&mut self) {
        if let Some(draft) = &mut self.draft {
            draft.content.clear();
        }
        (self.open, self.discarded) = (None, Vec::new());
        self.open_calls.clear();
    }

    fn finish_draft(&mut self) {
        let discarded = std::mem::take(&mut self.discarded);
        let Some(mut draft) = self.draft.take() else { return };
        if !discarded.is_empty() {
            let mut place = 0..;
            draft.content.retain(|_| place.next().is_none_or(|place| !discarded.contains(&place)));
        }
        if draft.content.is_empty() {
            return;
        }
        self.results.expect(draft.tool_calls());
        self.messages.push(Arc::new(draft));
    }

    fn finish_results(&mut self) {
        if let Some(content) = self.results.take_complete() {
            let mut message = self.new_message(Role::Tool);
            message.content = content;
            self.messages.push(Arc::new(message));
        }
    }
}

impl BlockKind {
    /// Returns the event that ends a block of this kind.
    pub fn end(self, block_id: BlockId, opaque: Opaque) -> EventKind {
        let discarded = false;
        match self {
            Self::Text => EventKind::TextBlockEnd { block_id, opaque, discarded },
            Self::Thinking => EventKind::ThinkingBlockEnd { block_id, opaque, discarded },
            Self::Data => EventKind::DataBlockEnd { block_id, opaque, discarded },
        }
    }
}

/// The result of a call that was interrupted.
const INTERRUPTED: &str = "interrupted before it ended";

fn empty_data(media_type: &str) -> ContentBlock {
    ContentBlock::Data {
        media_type: media_type.to_owned(),
        source: DataSource::Base64(String::new()),
        opaque: Opaque::new(),
    }
}
