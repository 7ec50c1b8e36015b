//! The order in which the events of one invocation may come. Pure.

use std::collections::{HashMap, HashSet};

use mainstem_event::{
    Discarded, EventKind,
    fold::{RecordedCall, RecordedInvocation},
};
use mainstem_message::{BlockId, ContentBlock, ToolCall, ToolCallId, ToolState};

/// The longest id of a call, in bytes.
const MAX_ID: usize = 256;

/// What is wrong with an event, for a message.
type Verdict = Result<(), String>;

/// What an invocation has open.
#[derive(Debug, Default)]
pub(super) struct Grammar {
    /// The open block, with the kind of block.
    open: Option<(BlockId, &'static str)>,
    blocks: HashSet<BlockId>,
    calls: HashMap<ToolCallId, Stage>,
    is_model_called: bool,
    /// The model call is not for an answer: it says nothing.
    is_quiet: bool,
    /// The calls of the last answer, in the order of their ends.
    answer: Vec<ToolCallId>,
    /// What the present attempt of the model call has said.
    attempt: Discarded,
    /// Whether a block or call has ended as discarded, which a repetition has to take back.
    is_discarding: bool,
    has_denied_all: bool,
    made: HashMap<ToolCallId, Made>,
    /// The number of model calls.
    answers: usize,
    /// For each answer, the last of its calls whose first child has started.
    started: HashMap<usize, usize>,
}

/// When a call was made: in which answer, and how many calls there were before.
#[derive(Clone, Copy, Debug)]
struct Made {
    answer: usize,
    number: usize,
    has_child: bool,
}

/// How far a tool call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Calling,
    Called,
    Running,
    Ended(ToolState),
    TakenBack,
}

impl Grammar {
    /// Returns the grammar behind the events of a record, whose open model call begins again.
    pub(super) fn recorded(own: &RecordedInvocation) -> Self {
        let parts = &own.parts;
        let stage = |call: &RecordedCall| match call {
            RecordedCall::Called => Stage::Called,
            RecordedCall::Running => Stage::Running,
            RecordedCall::Ended(state) => Stage::Ended(*state),
            RecordedCall::Discarded => Stage::TakenBack,
        };
        let mut calls: HashMap<_, _> =
            parts.calls.iter().map(|(id, call)| (id.clone(), stage(call))).collect();
        let said = parts.attempt.iter().flat_map(|said| &said.tool_calls);
        calls.extend(said.map(|call| (call.clone(), Stage::TakenBack)));
        let answer: Vec<_> = own.open_calls().map(|(call, _)| call.id.clone()).collect();
        let (is_model_called, answers) = (parts.attempt.is_some(), parts.model_calls as usize);
        let made = |(number, id): (usize, &ToolCallId)| {
            (id.clone(), Made { answer: answers, number, has_child: false })
        };
        let made = answer.iter().enumerate().map(made).collect();
        Self { calls, answer, is_model_called, answers, made, ..Self::default() }
    }

    /// Takes in the next event.
    ///
    /// # Errors
    /// The event can't come here.
    pub(super) fn apply(&mut self, kind: &EventKind) -> Verdict {
        use EventKind::*;
        self.check_discarding(kind)?;
        match kind {
            ModelRetry { discarded, .. } | ModelFallback { discarded, .. } => self.take_back(discarded),
            TextBlockStart { block_id } => self.begin(block_id, "text"),
            ThinkingBlockStart { block_id } => self.begin(block_id, "thinking"),
            DataBlockStart { block_id, .. } => self.begin(block_id, "data"),
            TextBlockDelta { block_id, .. } => self.inside(block_id, "text"),
            ThinkingBlockDelta { block_id, .. } => self.inside(block_id, "thinking"),
            DataBlockDelta { block_id, .. } => self.inside(block_id, "data"),
            TextBlockEnd { block_id, .. } => self.end(block_id, "text"),
            ThinkingBlockEnd { block_id, .. } => self.end(block_id, "thinking"),
            DataBlockEnd { block_id, .. } => self.end(block_id, "data"),
            HintBlock { block_id, .. } => self.hint(block_id),
            ModelCallStart { purpose, .. } => {
                self.is_quiet = purpose.is_some();
                self.model_call(true)
            }
            ModelCallEnd { .. } => self.model_call(false),
            ToolCallStart { tool_call_id, .. } => self.call(tool_call_id),
            ToolCallDelta { tool_call_id, .. } => self.at(tool_call_id, Stage::Calling).map(drop),
            ToolCallEnd { tool_call_id, .. } => {
                self.answer.push(tool_call_id.clone());
                let made = Made { answer: self.answers, number: self.made.len(), has_child: false };
                self.made.insert(tool_call_id.clone(), made);
                self.advance(tool_call_id, Stage::Calling, Stage::Called)
            }
            ToolResultStart { .. } if self.is_model_called => {
                Err("a result begins within a model call".to_owned())
            }
            ToolResultStart { tool_call_id, .. } => self.advance(tool_call_id, Stage::Called, Stage::Running),
            ToolResultDataDelta { data, .. }
                if !matches!(**data, ContentBlock::Text { .. } | ContentBlock::Data { .. }) =>
            {
                Err("a result has text and data only".to_owned())
            }
            ToolResultTextDelta { tool_call_id, .. } | ToolResultDataDelta { tool_call_id, .. } => {
                self.at(tool_call_id, Stage::Running).map(drop)
            }
            ToolResultEnd { tool_call_id, state, .. } => {
                self.advance(tool_call_id, Stage::Running, Stage::Ended(*state))
            }
            AllToolsDenied { denied_tool_calls } => self.all_denied(denied_tool_calls),
            _ => Ok(()),
        }
    }

    /// Returns `true` if the call is made and has no result yet.
    pub(super) fn is_open(&self, call: &ToolCallId) -> bool {
        self.calls.get(call).is_some_and(|stage| matches!(stage, Stage::Called | Stage::Running))
    }

    /// Returns `true` if the call has ended and left its child running.
    pub(super) fn lets_go(&self, call: &ToolCallId) -> bool {
        self.calls.get(call) == Some(&Stage::Ended(ToolState::Running))
    }

    /// Notes that a child of a call starts; returns `true` if it may by the order of the calls: the
    /// first children of an answer's calls start in their order, unless the call has let its child
    /// go.
    pub(super) fn child_starts(&mut self, call: &ToolCallId) -> bool {
        if self.lets_go(call) {
            return true;
        }
        let Some(made) = self.made.get_mut(call) else { return true };
        let last = self.started.entry(made.answer).or_insert(made.number);
        let is_in_order = made.has_child || *last <= made.number;
        if is_in_order {
            made.has_child = true;
            *last = made.number.max(*last);
        }
        is_in_order
    }

    fn is_new(&mut self, id: &BlockId) -> Verdict {
        if self.blocks.insert(id.clone()) { Ok(()) } else { Err(format!("block {id} begins twice")) }
    }

    /// A hint is a message, which comes between an answer with its results and the next answer.
    fn hint(&mut self, id: &BlockId) -> Verdict {
        if self.is_model_called || self.unanswered().is_some() {
            return Err("a hint comes within a model call, or before the results of calls".to_owned());
        }
        self.is_new(id)
    }

    fn begin(&mut self, id: &BlockId, kind: &'static str) -> Verdict {
        if let Some((open, _)) = &self.open {
            return Err(format!("block {id} begins within block {open}"));
        }
        if !self.is_model_called {
            return Err(format!("block {id} begins outside a model call"));
        }
        if self.is_quiet {
            return Err(format!("block {id} begins in a model call for compaction"));
        }
        self.is_new(id)?;
        self.open = Some((id.clone(), kind));
        self.attempt.blocks.push(id.clone());
        Ok(())
    }

    fn inside(&self, id: &BlockId, kind: &'static str) -> Verdict {
        match &self.open {
            Some((open, of)) if open == id && *of == kind => Ok(()),
            _ => Err(format!("{kind} block {id} is not open")),
        }
    }

    fn end(&mut self, id: &BlockId, kind: &'static str) -> Verdict {
        self.inside(id, kind)?;
        self.open = None;
        Ok(())
    }

    fn model_call(&mut self, begins: bool) -> Verdict {
        let is_calling = self.calls.values().any(|stage| *stage == Stage::Calling);
        if self.open.is_some() || is_calling {
            return Err("a model call begins or ends within a block or a call".to_owned());
        }
        if begins == self.is_model_called {
            return Err("model calls overlap, or one ends that has not begun".to_owned());
        }
        if begins && let Some(call) = self.unanswered() {
            return Err(format!("a model call begins before call {call} has a result"));
        }
        (self.is_model_called, self.attempt) = (begins, Discarded::default());
        if begins {
            self.answer.clear();
            self.answers += 1;
            self.has_denied_all = false;
        }
        Ok(())
    }

    fn unanswered(&self) -> Option<&ToolCallId> {
        self.answer.iter().find(|call| !matches!(self.calls.get(*call), Some(Stage::Ended(_))))
    }

    fn call(&mut self, id: &ToolCallId) -> Verdict {
        if !self.is_model_called {
            return Err(format!("call {id} begins outside a model call"));
        }
        if self.is_quiet {
            return Err(format!("call {id} begins in a model call for compaction"));
        }
        if id.as_str().len() > MAX_ID {
            return Err(format!("the id of a call has more than {MAX_ID} bytes"));
        }
        match self.calls.insert(id.clone(), Stage::Calling) {
            None => {
                self.attempt.tool_calls.push(id.clone());
                Ok(())
            }
            Some(_) => Err(format!("call {id} begins twice")),
        }
    }

    /// What ends as discarded is taken back next, unless the model call ends there.
    fn check_discarding(&mut self, kind: &EventKind) -> Verdict {
        use EventKind::*;
        let is_discarded = kind.is_discarded();
        let is_last = matches!(kind, ModelRetry { .. } | ModelFallback { .. } | ModelCallEnd { .. });
        if std::mem::replace(&mut self.is_discarding, is_discarded) && !is_discarded && !is_last {
            return Err("what ends as discarded is not taken back".to_owned());
        }
        Ok(())
    }

    /// A model call is repeated: all that its attempt has said is taken back.
    fn take_back(&mut self, discarded: &Discarded) -> Verdict {
        let is_calling = self.calls.values().any(|stage| *stage == Stage::Calling);
        if self.open.is_some() || is_calling {
            return Err("a model call is repeated within a block or a call".to_owned());
        }
        let said = std::mem::take(&mut self.attempt);
        let is_all = if self.is_model_called { said == *discarded } else { discarded.is_empty() };
        if !is_all {
            return Err(
                "a model call is repeated, and something else is taken back than it has said".to_owned()
            );
        }
        // Outside of a model call, the calls of the last answer stay.
        for call in said.tool_calls {
            self.answer.retain(|answered| *answered != call);
            self.calls.insert(call, Stage::TakenBack);
        }
        Ok(())
    }

    fn at(&mut self, id: &ToolCallId, stage: Stage) -> Result<&mut Stage, String> {
        let found = self.calls.get_mut(id).filter(|found| **found == stage);
        found.ok_or_else(|| format!("call {id} can't go on like this"))
    }

    fn advance(&mut self, id: &ToolCallId, from: Stage, to: Stage) -> Verdict {
        *self.at(id, from)? = to;
        Ok(())
    }

    fn all_denied(&mut self, denied: &[ToolCall]) -> Verdict {
        let is_denied = |id| self.calls.get(id) == Some(&Stage::Ended(ToolState::Denied));
        let is_told = denied.iter().map(|call| &call.id).eq(&self.answer);
        if denied.is_empty() || !is_told || !self.answer.iter().all(is_denied) || self.has_denied_all {
            return Err("not every call was denied, or another is named".to_owned());
        }
        self.has_denied_all = true;
        Ok(())
    }
}
