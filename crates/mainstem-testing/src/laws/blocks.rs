//! Law 4: blocks, tool calls and tool results are START, DELTA*, END; blocks of one invocation do
//! not overlap. A model call for compaction has none.

use std::collections::HashSet;

use mainstem_event::{AgentEvent, EventKind};
use mainstem_message::{BlockId, ToolCallId};

use super::{Invocation, Violation};

pub(super) fn check(all: &[Invocation<'_>]) -> Result<(), Violation> {
    all.iter().try_for_each(|one| {
        let mut state = State::default();
        one.kinds().try_for_each(|(event, kind)| state.apply(event, kind))?;
        state.end(one.end())
    })
}

#[derive(Default)]
struct State {
    open: Option<(BlockId, &'static str)>,
    seen: HashSet<BlockId>,
    calls: Spans,
    results: Spans,
    /// Calls that need no result.
    taken_back: HashSet<ToolCallId>,
    in_model_call: bool,
    /// The model call is not for an answer.
    is_quiet: bool,
}

/// Things that begin, continue and end, and may overlap.
#[derive(Default)]
struct Spans {
    open: HashSet<ToolCallId>,
    ended: HashSet<ToolCallId>,
}

fn broken(event: &AgentEvent, message: impl Into<String>) -> Result<(), Violation> {
    Err(Violation::new(4, event.seq, message))
}

impl State {
    fn apply(&mut self, event: &AgentEvent, kind: &EventKind) -> Result<(), Violation> {
        use EventKind::*;
        match kind {
            TextBlockStart { block_id } => self.start(event, block_id, "text"),
            ThinkingBlockStart { block_id } => self.start(event, block_id, "thinking"),
            DataBlockStart { block_id, .. } => self.start(event, block_id, "data"),
            TextBlockDelta { block_id, .. } => self.inside(event, block_id, "text"),
            ThinkingBlockDelta { block_id, .. } => self.inside(event, block_id, "thinking"),
            DataBlockDelta { block_id, .. } => self.inside(event, block_id, "data"),
            TextBlockEnd { block_id, .. } => self.close(event, block_id, "text"),
            ThinkingBlockEnd { block_id, .. } => self.close(event, block_id, "thinking"),
            DataBlockEnd { block_id, .. } => self.close(event, block_id, "data"),
            ToolCallStart { tool_call_id, .. } if self.is_quiet => {
                broken(event, format!("call {tool_call_id} begins in a model call for compaction"))
            }
            ToolCallStart { tool_call_id, .. } => self.calls.start(event, tool_call_id, "call"),
            ToolCallDelta { tool_call_id, .. } => self.calls.inside(event, tool_call_id, "call"),
            ToolCallEnd { tool_call_id, discarded, .. } => {
                self.taken_back.extend(Some(tool_call_id.clone()).filter(|_| *discarded));
                self.calls.end(event, tool_call_id, "call")
            }
            ModelRetry { discarded, .. } | ModelFallback { discarded, .. } => {
                self.taken_back.extend(discarded.tool_calls.iter().cloned());
                Ok(())
            }
            ToolResultStart { tool_call_id, .. } => {
                if !self.calls.ended.contains(tool_call_id) {
                    return broken(event, format!("a result of {tool_call_id}, which was not called"));
                }
                self.results.start(event, tool_call_id, "result")
            }
            ToolResultTextDelta { tool_call_id, .. } | ToolResultDataDelta { tool_call_id, .. } => {
                self.results.inside(event, tool_call_id, "result")
            }
            ToolResultEnd { tool_call_id, .. } => self.results.end(event, tool_call_id, "result"),
            ModelCallStart { .. } | ModelCallEnd { .. } => {
                self.is_quiet = matches!(kind, ModelCallStart { purpose: Some(_), .. });
                self.model_call(event, matches!(kind, ModelCallStart { .. }))
            }
            HintBlock { block_id, .. } if !self.seen.insert(block_id.clone()) => {
                broken(event, format!("block {block_id} twice"))
            }
            _ => Ok(()),
        }
    }

    fn model_call(&mut self, event: &AgentEvent, starts: bool) -> Result<(), Violation> {
        if self.open.is_some() || !self.calls.open.is_empty() {
            return broken(event, "a model call begins or ends within a block or call");
        }
        if starts == self.in_model_call {
            return broken(event, "model calls are not one after the other");
        }
        self.in_model_call = starts;
        Ok(())
    }

    fn start(&mut self, event: &AgentEvent, id: &BlockId, sort: &'static str) -> Result<(), Violation> {
        if let Some((open, _)) = &self.open {
            return broken(event, format!("block {id} begins within block {open}"));
        }
        if self.is_quiet {
            return broken(event, format!("block {id} begins in a model call for compaction"));
        }
        if !self.seen.insert(id.clone()) {
            return broken(event, format!("block {id} begins twice"));
        }
        self.open = Some((id.clone(), sort));
        Ok(())
    }

    fn inside(&self, event: &AgentEvent, id: &BlockId, sort: &'static str) -> Result<(), Violation> {
        match &self.open {
            Some((open, of)) if open == id && *of == sort => Ok(()),
            _ => broken(event, format!("{sort} block {id} is not open")),
        }
    }

    fn close(&mut self, event: &AgentEvent, id: &BlockId, sort: &'static str) -> Result<(), Violation> {
        self.inside(event, id, sort)?;
        self.open = None;
        Ok(())
    }

    fn end(&self, seq: u64) -> Result<(), Violation> {
        let left = self.open.iter().map(|(id, _)| id.to_string());
        let left = left.chain(self.calls.open.iter().chain(&self.results.open).map(ToString::to_string));
        let unanswered = self.calls.ended.difference(&self.results.ended);
        let unanswered = unanswered.filter(|call| !self.taken_back.contains(*call)).map(ToString::to_string);
        match left.chain(unanswered).next() {
            Some(id) => Err(Violation::new(4, seq, format!("{id} never ends, or has no result"))),
            None if self.in_model_call => Err(Violation::new(4, seq, "a model call never ends")),
            None => Ok(()),
        }
    }
}

impl Spans {
    fn start(&mut self, event: &AgentEvent, id: &ToolCallId, what: &str) -> Result<(), Violation> {
        if self.ended.contains(id) || !self.open.insert(id.clone()) {
            return broken(event, format!("{what} {id} begins twice"));
        }
        Ok(())
    }

    fn inside(&self, event: &AgentEvent, id: &ToolCallId, what: &str) -> Result<(), Violation> {
        if self.open.contains(id) { Ok(()) } else { broken(event, format!("{what} {id} is not open")) }
    }

    fn end(&mut self, event: &AgentEvent, id: &ToolCallId, what: &str) -> Result<(), Violation> {
        self.inside(event, id, what)?;
        self.open.remove(id);
        self.ended.insert(id.clone());
        Ok(())
    }
}
