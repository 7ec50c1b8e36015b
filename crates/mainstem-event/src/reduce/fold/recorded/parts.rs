//! The blocks and calls of a recorded invocation, by their ids: what a process needs that goes on
//! with events which the record does not have.

use std::collections::BTreeMap;

use mainstem_message::{ToolCallId, ToolState};

use crate::{Discarded, EventKind};

/// The blocks and calls of an invocation, as far as they are recorded.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecordedParts {
    /// How many blocks have begun.
    pub blocks: u32,
    /// How many model calls have begun.
    pub model_calls: u32,
    /// What the open model call has said; `None` outside of model calls.
    pub attempt: Option<Discarded>,
    /// The calls of tools that have ended, or were discarded.
    pub calls: BTreeMap<ToolCallId, RecordedCall>,
    /// The `remoteId`s of what is complete, in order: of the blocks and calls of each model call
    /// that has ended, and of results.
    pub remote_ids: Vec<String>,
    /// Those of the open model call.
    of_attempt: Vec<String>,
}

/// How far a call of a tool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the stages between a call and its result")]
pub enum RecordedCall {
    /// It is made, and has no result.
    Called,
    /// Its result has begun.
    Running,
    /// Its result is complete.
    Ended(ToolState),
    /// It was discarded with its model call.
    Discarded,
}

impl RecordedParts {
    /// Takes in an event of the invocation, with its id at the remote.
    pub(super) fn apply(&mut self, kind: &EventKind, remote_id: Option<&str>) {
        use EventKind::*;
        match kind {
            ModelCallStart { .. } => {
                self.model_calls += 1;
                self.attempt = Some(Discarded::default());
            }
            ModelCallEnd { .. } => {
                self.attempt = None;
                let ids = std::mem::take(&mut self.of_attempt);
                ids.iter().for_each(|id| push(&mut self.remote_ids, id));
            }
            ModelRetry { discarded, .. } | ModelFallback { discarded, .. } => self.discard(discarded),
            TextBlockStart { block_id }
            | ThinkingBlockStart { block_id }
            | DataBlockStart { block_id, .. } => {
                self.blocks += 1;
                self.attempt.iter_mut().for_each(|said| said.blocks.push(block_id.clone()));
                remote_id.into_iter().for_each(|id| push(&mut self.of_attempt, id));
            }
            ToolCallStart { tool_call_id, .. } => {
                self.attempt.iter_mut().for_each(|said| said.tool_calls.push(tool_call_id.clone()));
                remote_id.into_iter().for_each(|id| push(&mut self.of_attempt, id));
            }
            ToolCallEnd { tool_call_id, .. } => self.advance(tool_call_id, RecordedCall::Called),
            ToolResultStart { tool_call_id, .. } => self.advance(tool_call_id, RecordedCall::Running),
            ToolResultEnd { tool_call_id, state, .. } => {
                self.advance(tool_call_id, RecordedCall::Ended(*state));
                remote_id.into_iter().for_each(|id| push(&mut self.remote_ids, id));
            }
            _ => {}
        }
    }

    fn advance(&mut self, call: &ToolCallId, to: RecordedCall) {
        self.calls.insert(call.clone(), to);
    }

    fn discard(&mut self, discarded: &Discarded) {
        if discarded.is_empty() {
            return;
        }
        discarded.tool_calls.iter().for_each(|call| self.advance(call, RecordedCall::Discarded));
        self.attempt = self.attempt.take().map(|_| Discarded::default());
        self.of_attempt.clear();
    }
}

/// Adds an id, unless it is the last one.
fn push(ids: &mut Vec<String>, id: &str) {
    if ids.last().is_none_or(|last| last != id) {
        ids.push(id.to_owned());
    }
}
