//! Turns a model's deltas into events: one model call, decided without waiting.

use std::{iter, sync::Arc, time::Duration};

use mainstem_event::{Discarded, EventKind, fold::BlockKind};
use mainstem_message::{BlockId, Opaque, RateLimits, StopReason, ToolCallId, Usage};
use mainstem_model::{ErrorKind, ModelDelta, ModelError};
use serde_json::json;

use crate::{AgentError, answer_limits::Length};

/// The name of the event for a call of one of the vendor's own tools.
const SERVER_TOOL: &str = "server_tool";

/// What a turn needs of its invocation.
pub(crate) trait Scope {
    fn emit(&mut self, kind: EventKind);
    /// Returns `true` if an earlier turn of the reply has a call of that id.
    fn is_taken(&self, id: &ToolCallId) -> bool;
    /// Returns an id for a call that came without one.
    fn new_call_id(&mut self) -> ToolCallId;
    /// Counts an answer that was cut.
    ///
    /// # Errors
    /// If the answers of the invocation were cut too often.
    fn count_cut(&mut self) -> Result<(), AgentError> {
        Ok(())
    }
}

/// Returns whole milliseconds.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// One model call. At most one block is open at a time; it ends where other content begins. Calls
/// stay open until their end or that of the answer.
#[derive(Debug)]
pub(crate) struct Turn {
    prefix: String,
    blocks: u32,
    open: Option<(BlockKind, BlockId)>,
    calls: Vec<Call>,
    /// The blocks of the present attempt.
    said: Vec<BlockId>,
    /// The ids of the calls that were taken back.
    taken_back: Vec<ToolCallId>,
    length: Length,
    /// The model that gives the answer instead of the one that was asked.
    fallback: Option<Arc<str>>,
    /// What the failed attempts have used, as far as it was reported, each with its fallback.
    failed: Vec<Attempt>,
    usage: Option<Usage>,
    /// The usage is that of several prompts: the answer has several parts, or the service has run
    /// tools of its own.
    has_several_prompts: bool,
    pub(crate) stop: Option<StopReason>,
    /// What the service still allows.
    pub(crate) rate_limits: Option<Box<RateLimits>>,
}

/// What an attempt has used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attempt {
    /// The model, if it is not the one that was asked.
    pub(crate) fallback: Option<Arc<str>>,
    pub(crate) usage: Usage,
}

#[derive(Debug)]
struct Call {
    slot: usize,
    id: ToolCallId,
    name: Arc<str>,
    /// Bytes of its arguments so far.
    bytes: usize,
    ended: bool,
}

impl Turn {
    /// Creates a turn whose blocks are named after `prefix`, which is unique within the reply.
    pub(crate) fn new(prefix: String, length: Length) -> Self {
        Self {
            prefix,
            blocks: 0,
            open: None,
            calls: Vec::new(),
            said: Vec::new(),
            taken_back: Vec::new(),
            length,
            fallback: None,
            failed: Vec::new(),
            usage: None,
            has_several_prompts: false,
            stop: None,
            rate_limits: None,
        }
    }

    /// Emits the events of a delta, in order; an empty fragment has none.
    ///
    /// # Errors
    /// If a fragment belongs to no call, or the answer exceeds its limits; this delta is dropped
    /// then. Or if the answers of the invocation were cut too often.
    pub(crate) fn push(&mut self, delta: ModelDelta, scope: &mut impl Scope) -> Result<(), AgentError> {
        self.count(&delta)?;
        match delta {
            ModelDelta::Text(delta)
            | ModelDelta::Thinking(delta)
            | ModelDelta::Data(delta)
            | ModelDelta::CallArguments { delta, .. }
                if delta.is_empty() => {}
            ModelDelta::Text(delta) => {
                let block_id = self.block(BlockKind::Text, scope);
                scope.emit(EventKind::TextBlockDelta { block_id, delta });
            }
            ModelDelta::Thinking(delta) => {
                let block_id = self.block(BlockKind::Thinking, scope);
                scope.emit(EventKind::ThinkingBlockDelta { block_id, delta });
            }
            ModelDelta::DataStart { media_type } => {
                self.close(Opaque::new(), scope);
                let block_id = self.new_block(BlockKind::Data);
                scope.emit(EventKind::DataBlockStart { block_id, media_type });
            }
            ModelDelta::Data(delta) => self.data(delta, scope)?,
            ModelDelta::BlockEnd { opaque } => {
                if self.open.is_none() && !opaque.is_empty() {
                    self.block(BlockKind::Thinking, scope);
                }
                self.close(opaque, scope);
            }
            ModelDelta::CallStart { slot, id, name } => self.start_call(slot, id, name, scope),
            ModelDelta::CallArguments { slot, delta } => {
                let tool_call_id = self.call(slot)?.id.clone();
                scope.emit(EventKind::ToolCallDelta { tool_call_id, delta });
            }
            ModelDelta::CallEnd { slot, opaque } => self.call(slot)?.end(opaque, scope),
            ModelDelta::Usage(usage) => self.usage = Some(usage),
            ModelDelta::Continued => self.has_several_prompts = true,
            ModelDelta::Stop(reason) => self.stop = Some(reason),
            ModelDelta::RateLimits(limits) => self.rate_limits = Some(limits),
            other => self.report(other, scope)?,
        }
        Ok(())
    }

    /// Counts the content of a delta.
    fn count(&mut self, delta: &ModelDelta) -> Result<(), AgentError> {
        match delta {
            ModelDelta::Text(text) => self.count_in(BlockKind::Text, text),
            ModelDelta::Thinking(text) => self.count_in(BlockKind::Thinking, text),
            ModelDelta::Data(text) => self.length.add(text.len()),
            ModelDelta::DataStart { .. } => self.length.add_block(),
            ModelDelta::CallStart { name, .. } => {
                self.length.add_block()?;
                self.length.add(name.len())
            }
            ModelDelta::CallArguments { slot, delta } => {
                let call = self.call(*slot)?;
                call.bytes += delta.len();
                let all = call.bytes;
                self.length.add_arguments(delta.len(), all)
            }
            ModelDelta::BlockEnd { opaque } | ModelDelta::CallEnd { opaque, .. } => {
                self.length.add(opaque.iter().map(|(key, value)| key.len() + value.to_string().len()).sum())
            }
            _ => Ok(()),
        }
    }

    fn count_in(&mut self, kind: BlockKind, text: &str) -> Result<(), AgentError> {
        if !text.is_empty() && self.open.as_ref().is_none_or(|(open, _)| *open != kind) {
            self.length.add_block()?;
        }
        self.length.add(text.len())
    }

    /// Returns the attempts that reported their usage.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = Attempt> {
        let last = self.usage.map(|usage| Attempt { fallback: self.fallback.clone(), usage });
        self.failed.iter().cloned().chain(last)
    }

    /// Returns `true` if the usage is that of one prompt to the model that was asked.
    pub(crate) fn is_of_one_prompt(&self) -> bool {
        !self.has_several_prompts && self.fallback.is_none() && self.failed.is_empty()
    }

    /// Emits the report of a decorator around the model. If an attempt is repeated, what it has
    /// said is taken back first.
    fn report(&mut self, delta: ModelDelta, scope: &mut impl Scope) -> Result<(), AgentError> {
        let fallback = match &delta {
            ModelDelta::Fallback { to, .. } => Some(to.clone()),
            _ => None,
        };
        let kind = match delta {
            ModelDelta::Retry { attempt, wait, error } => {
                EventKind::model_retry(attempt, millis(wait), error)
            }
            ModelDelta::Fallback { from, to, reason } => EventKind::model_fallback(from, to, reason),
            ModelDelta::NotStreaming { reason } => {
                scope.emit(EventKind::StreamFallback { reason });
                return Ok(());
            }
            ModelDelta::RateLimitWait { limit, wait, ahead, refusal } => {
                let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
                let kind = EventKind::rate_limit_wait(limit, ahead).with_wait_ms(wait.map(millis));
                scope.emit(kind.with_refusal(refusal));
                return Ok(());
            }
            ModelDelta::RateLimitPassed { waited } => {
                scope.emit(EventKind::rate_limit_passed(millis(waited)));
                return Ok(());
            }
            ModelDelta::ServerToolCall { name, input } => {
                self.has_several_prompts = true;
                let value = json!({ "tool": name, "input": input });
                scope.emit(EventKind::Custom { name: SERVER_TOOL.into(), value });
                return Ok(());
            }
            _ => return Ok(()),
        };
        let taken_back = self.take_back(scope);
        self.fallback = fallback.or_else(|| self.fallback.take());
        let is_cut = !taken_back.is_empty();
        scope.emit(kind.with_taken_back(taken_back));
        if is_cut { scope.count_cut() } else { Ok(()) }
    }

    /// Ends what is open as discarded, and returns all that the attempt has said.
    fn take_back(&mut self, scope: &mut impl Scope) -> Discarded {
        if let Some((kind, id)) = self.open.take() {
            scope.emit(kind.end(id, Opaque::new()).with_discarded(true));
        }
        let mut calls = Vec::new();
        for call in self.calls.drain(..) {
            if !call.ended {
                scope.emit(call.end_kind(Opaque::new()).with_discarded(true));
            }
            calls.push(call.id);
        }
        let usage = self.usage.take();
        self.failed.extend(usage.map(|usage| Attempt { fallback: self.fallback.clone(), usage }));
        self.taken_back.extend(calls.iter().cloned());
        self.length.reset();
        (self.has_several_prompts, self.stop) = (false, None);
        Discarded::new(std::mem::take(&mut self.said), calls)
    }

    /// Ends open blocks and calls.
    pub(crate) fn finish(&mut self, scope: &mut impl Scope) {
        self.close(Opaque::new(), scope);
        for call in self.calls.iter_mut().filter(|call| !call.ended) {
            call.end(Opaque::new(), scope);
        }
    }

    /// Returns the open block of that kind, or begins one.
    fn block(&mut self, kind: BlockKind, scope: &mut impl Scope) -> BlockId {
        if let Some((open, id)) = &self.open
            && *open == kind
        {
            return id.clone();
        }
        self.close(Opaque::new(), scope);
        let block_id = self.new_block(kind);
        scope.emit(match kind {
            BlockKind::Thinking => EventKind::ThinkingBlockStart { block_id: block_id.clone() },
            BlockKind::Text | BlockKind::Data => EventKind::TextBlockStart { block_id: block_id.clone() },
        });
        block_id
    }

    fn new_block(&mut self, kind: BlockKind) -> BlockId {
        self.blocks += 1;
        let id = [&self.prefix, ".", itoa::Buffer::new().format(self.blocks)].concat();
        let id = BlockId::from_lossy(id);
        self.open = Some((kind, id.clone()));
        self.said.push(id.clone());
        id
    }

    fn data(&self, delta: String, scope: &mut impl Scope) -> Result<(), ModelError> {
        let Some((BlockKind::Data, id)) = &self.open else {
            return Err(ModelError::new(ErrorKind::Protocol, "bytes of a data block that never began"));
        };
        scope.emit(EventKind::DataBlockDelta { block_id: id.clone(), delta });
        Ok(())
    }

    fn close(&mut self, opaque: Opaque, scope: &mut impl Scope) {
        if let Some((kind, id)) = self.open.take() {
            scope.emit(kind.end(id, opaque));
        }
    }

    /// Begins a call. Vendors omit ids, or give one id twice; ours are unique within the reply.
    fn start_call(&mut self, slot: usize, id: Option<ToolCallId>, name: String, scope: &mut impl Scope) {
        self.close(Opaque::new(), scope);
        let wanted = id.filter(|id| !id.as_str().is_empty()).unwrap_or_else(|| scope.new_call_id());
        let is_known = |id: &ToolCallId| self.calls.iter().any(|call| call.id == *id);
        let is_free = |id: &ToolCallId| !is_known(id) && !self.taken_back.contains(id) && !scope.is_taken(id);
        let numbered = (2..).map(|n| ToolCallId::new(format!("{wanted}~{n}")));
        let id = iter::once(wanted.clone()).chain(numbered).find(is_free).unwrap_or(wanted);
        let name: Arc<str> = name.into();
        self.calls.push(Call { slot, id: id.clone(), name: name.clone(), bytes: 0, ended: false });
        scope.emit(EventKind::ToolCallStart { tool_call_id: id, tool_call_name: name });
    }

    fn call(&mut self, slot: usize) -> Result<&mut Call, ModelError> {
        let call = self.calls.iter_mut().rev().find(|call| call.slot == slot && !call.ended);
        call.ok_or_else(|| {
            ModelError::new(ErrorKind::Protocol, format!("a fragment of tool call {slot}, which never began"))
        })
    }
}

impl Call {
    fn end(&mut self, opaque: Opaque, scope: &mut impl Scope) {
        self.ended = true;
        scope.emit(self.end_kind(opaque));
    }

    fn end_kind(&self, opaque: Opaque) -> EventKind {
        let (tool_call_id, tool_call_name) = (self.id.clone(), self.name.clone());
        EventKind::ToolCallEnd { tool_call_id, tool_call_name, opaque, discarded: false }
    }
}

#[cfg(test)]
mod tests;
