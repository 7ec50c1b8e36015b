//! The results of one batch of tool calls: they come in any order and are stored in the order of
//! the calls.

use std::collections::HashMap;

use mainstem_message::{ContentBlock, ToolCall, ToolCallId, ToolResult, ToolState};

#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    all: Vec<Pending>,
    /// The index of each call's result.
    places: HashMap<ToolCallId, usize>,
    /// All results before this index are complete.
    first: usize,
}

#[derive(Clone, Debug)]
struct Pending {
    result: ToolResult,
    phase: Phase,
    /// The next call with the same id, which gets the next result.
    twin: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Phase {
    Called,
    Started,
    Ended,
}

impl Results {
    pub(super) fn expect<'a>(&mut self, calls: impl Iterator<Item = &'a ToolCall>) {
        *self = Self { all: calls.map(Pending::new).collect(), ..Self::default() };
        for (place, pending) in self.all.iter_mut().enumerate().rev() {
            pending.twin = self.places.insert(pending.result.tool_call_id.clone(), place);
        }
    }

    pub(super) fn has_started(&self, id: &ToolCallId) -> bool {
        self.places.get(id).is_some_and(|place| self.all[*place].phase != Phase::Called)
    }

    pub(super) fn bytes(&self, id: &ToolCallId) -> usize {
        let pending = self.places.get(id).map(|place| &self.all[*place]);
        let open = pending.filter(|pending| pending.phase != Phase::Ended);
        let content = open.into_iter().flat_map(|pending| &pending.result.content);
        content.map(|block| if let ContentBlock::Text { text, .. } = block { text.len() } else { 0 }).sum()
    }

    /// Returns the result, unless it is complete.
    fn find(&mut self, id: &ToolCallId) -> Option<&mut Pending> {
        self.all.get_mut(*self.places.get(id)?).filter(|pending| pending.phase != Phase::Ended)
    }

    pub(super) fn start(&mut self, id: &ToolCallId) {
        if let Some(pending) = self.find(id) {
            pending.phase = Phase::Started;
        }
    }

    pub(super) fn text(&mut self, id: &ToolCallId, delta: &str) {
        if let Some(pending) = self.find(id) {
            append_text(&mut pending.result.content, delta);
        }
    }

    pub(super) fn data(&mut self, id: &ToolCallId, data: &ContentBlock) {
        if let Some(pending) = self.find(id) {
            pending.result.content.push(data.clone());
        }
    }

    pub(super) fn end(&mut self, id: &ToolCallId, state: ToolState) {
        let Some(pending) = self.find(id) else { return };
        (pending.result.state, pending.phase) = (state, Phase::Ended);
        if let Some(twin) = pending.twin {
            self.places.insert(id.clone(), twin);
        }
        self.first += self.all[self.first..].iter().take_while(|one| one.phase == Phase::Ended).count();
    }

    /// Returns the first call without a complete result.
    pub(super) fn unfinished(&self) -> Option<(&ToolResult, Phase)> {
        self.all.get(self.first).map(|one| (&one.result, one.phase))
    }

    /// Returns all results in call order, once the last is complete.
    pub(super) fn take_complete(&mut self) -> Option<Vec<ContentBlock>> {
        if self.all.is_empty() || self.unfinished().is_some() {
            return None;
        }
        let Self { all, .. } = std::mem::take(self);
        Some(all.into_iter().map(|one| ContentBlock::ToolResult(one.result)).collect())
    }
}

impl Pending {
    fn new(call: &ToolCall) -> Self {
        let (tool_call_id, name) = (call.id.clone(), call.name.clone());
        let result = ToolResult { tool_call_id, name, content: Vec::new(), state: ToolState::Running };
        Self { result, phase: Phase::Called, twin: None }
    }
}

/// Appends text to a result: to its last block, unless that has another type or opaque data of a
/// vendor.
pub(crate) fn append_text(content: &mut Vec<ContentBlock>, delta: &str) {
    match content.last_mut() {
        Some(ContentBlock::Text { text, opaque }) if opaque.is_empty() => text.push_str(delta),
        _ => content.push(ContentBlock::text(delta)),
    }
}
