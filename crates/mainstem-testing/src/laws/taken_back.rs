//! Law 14: a model call that is repeated takes back exactly what its failed attempt has said.

use std::collections::HashSet;

use mainstem_event::{AgentEvent, Discarded, EventKind};
use mainstem_message::ToolCallId;

use super::{Invocation, Violation};

pub(super) fn check(all: &[Invocation<'_>]) -> Result<(), Violation> {
    all.iter().try_for_each(|one| {
        let mut state = State::default();
        one.kinds().try_for_each(|(event, kind)| state.apply(event, kind))
    })
}

#[derive(Default)]
struct State {
    /// What the present attempt has said; `None` outside of model calls.
    attempt: Option<Discarded>,
    /// Blocks and calls that are open.
    open: usize,
    /// Whether something has ended as discarded that is yet to be taken back.
    is_discarding: bool,
    taken_back: HashSet<ToolCallId>,
}

fn broken(event: &AgentEvent, message: impl Into<String>) -> Result<(), Violation> {
    Err(Violation::new(14, event.seq, message))
}

impl State {
    fn apply(&mut self, event: &AgentEvent, kind: &EventKind) -> Result<(), Violation> {
        use EventKind::*;
        self.check_discarding(event, kind)?;
        match kind {
            ModelCallStart { .. } => self.attempt = Some(Discarded::default()),
            ModelCallEnd { .. } => self.attempt = None,
            TextBlockStart { block_id }
            | ThinkingBlockStart { block_id }
            | DataBlockStart { block_id, .. } => {
                self.open += 1;
                self.attempt.iter_mut().for_each(|said| said.blocks.push(block_id.clone()));
            }
            ToolCallStart { tool_call_id, .. } => {
                self.open += 1;
                self.attempt.iter_mut().for_each(|said| said.tool_calls.push(tool_call_id.clone()));
            }
            TextBlockEnd { .. } | ThinkingBlockEnd { .. } | DataBlockEnd { .. } | ToolCallEnd { .. } => {
                self.open = self.open.saturating_sub(1);
            }
            ModelRetry { discarded, .. } | ModelFallback { discarded, .. } => {
                return self.take_back(event, discarded);
            }
            ToolResultStart { tool_call_id, .. } if self.taken_back.contains(tool_call_id) => {
                return broken(event, format!("call {tool_call_id} runs, which was taken back"));
            }
            _ => {}
        }
        Ok(())
    }

    /// What ends as discarded is taken back next, unless its process ended there.
    fn check_discarding(&mut self, event: &AgentEvent, kind: &EventKind) -> Result<(), Violation> {
        use EventKind::*;
        let is_discarded = kind.is_discarded();
        let is_last = matches!(kind, ModelRetry { .. } | ModelFallback { .. } | ModelCallEnd { .. });
        if std::mem::replace(&mut self.is_discarding, is_discarded) && !is_discarded && !is_last {
            return broken(event, "what ended as discarded was not taken back");
        }
        Ok(())
    }

    fn take_back(&mut self, event: &AgentEvent, discarded: &Discarded) -> Result<(), Violation> {
        if self.open > 0 {
            return broken(event, "a model call is repeated within a block or call");
        }
        let said = self.attempt.as_mut().map(std::mem::take).unwrap_or_default();
        if said != *discarded {
            return broken(event, format!("a model call takes back {discarded:?}, and has said {said:?}"));
        }
        self.taken_back.extend(said.tool_calls);
        Ok(())
    }
}
