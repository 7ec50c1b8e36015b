//! The results of one batch of tool calls: they come in any order and are kept in the order of the calls.

use mainstem_message::{ContentBlock, ToolCall, ToolCallId, ToolResult, ToolState};

#[derive(Clone, Debug, Default)]
pub(super) struct Results(Vec<Pending>);

#[derive(Clone, Debug)]
struct Pending {
    result: ToolResult,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Phase {
    Called,
    Started,
    Ended,
}

impl Results {
    pub(super) fn expect<'a>(&mut self, calls: impl Iterator<Item = &'a ToolCall>) {
        self.0 = calls
            .map(|call| {
                let (tool_call_id, name) = (call.id.clone(), call.name.clone());
                let result =
                    ToolResult { tool_call_id, name, content: Vec::new(), state: ToolState::Running };
                Pending { result, phase: Phase::Called }
            })
            .collect();
    }

    fn find(&mut self, id: &ToolCallId) -> Option<&mut Pending> {
        self.0.iter_mut().find(|pending| pending.result.tool_call_id == *id)
    }

    pub(super) fn start(&mut self, id: &ToolCallId) {
        if let Some(pending) = self.find(id) {
            pending.phase = Phase::Started;
        }
    }

    pub(super) fn text(&mut self, id: &ToolCallId, delta: &str) {
        let Some(pending) = self.find(id) else { return };
        match pending.result.content.last_mut() {
            Some(ContentBlock::Text { text, .. }) => text.push_str(delta),
            _ => pending.result.content.push(ContentBlock::text(delta)),
        }
    }

    pub(super) fn data(&mut self, id: &ToolCallId, data: &ContentBlock) {
        if let Some(pending) = self.find(id) {
            pending.result.content.push(data.clone());
        }
    }

    pub(super) fn end(&mut self, id: &ToolCallId, state: ToolState) {
        if let Some(pending) = self.find(id) {
            (pending.result.state, pending.phase) = (state, Phase::Ended);
        }
    }

    /// The first call that has no complete result.
    pub(super) fn unfinished(&self) -> Option<(&ToolResult, Phase)> {
        self.0.iter().find(|one| one.phase != Phase::Ended).map(|one| (&one.result, one.phase))
    }

    /// All results in call order, once the last one is there.
    pub(super) fn take_complete(&mut self) -> Option<Vec<ContentBlock>> {
        if self.0.is_empty() || self.unfinished().is_some() {
            return None;
        }
        Some(
            std::mem::take(&mut self.0).into_iter().map(|one| ContentBlock::ToolResult(one.result)).collect(),
        )
    }
}
