//! Limits of a model's answers.

use crate::AgentError;

/// Limits of the output of models, in bytes of text, thinking, data and arguments. An answer beyond
/// one of them ends the agent with [`AgentError::TooLong`]; the output until then stays in the
/// conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerLimits {
    /// Bytes of one answer. 16 MiB by default: room for images.
    pub answer: usize,
    /// Bytes of one tool call's arguments. 4 MiB by default.
    pub arguments: usize,
    /// Bytes of all answers of one invocation. 64 MiB by default.
    pub turn: usize,
    /// The number of blocks and tool calls of one answer. 4096 by default.
    pub blocks: usize,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self { answer: 16 << 20, arguments: 4 << 20, turn: 64 << 20, blocks: 4096 }
    }
}

impl AnswerLimits {
    /// Returns the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the bytes of one answer.
    #[must_use]
    pub fn with_answer(mut self, bytes: usize) -> Self {
        self.answer = bytes;
        self
    }

    /// Sets the bytes of one tool call's arguments.
    #[must_use]
    pub fn with_arguments(mut self, bytes: usize) -> Self {
        self.arguments = bytes;
        self
    }

    /// Sets the bytes of all answers of one invocation.
    #[must_use]
    pub fn with_turn(mut self, bytes: usize) -> Self {
        self.turn = bytes;
        self
    }

    /// Sets the number of blocks and tool calls of one answer.
    #[must_use]
    pub fn with_blocks(mut self, most: usize) -> Self {
        self.blocks = most;
        self
    }
}

/// The length of one answer so far.
#[derive(Clone, Debug)]
pub(crate) struct Length {
    limits: AnswerLimits,
    /// Bytes of the invocation's earlier answers.
    before: usize,
    answer: usize,
    blocks: usize,
}

impl Length {
    pub(crate) fn new(limits: AnswerLimits, before: usize) -> Self {
        Self { limits, before, answer: 0, blocks: 0 }
    }

    /// Begins anew with the answer.
    pub(crate) fn reset(&mut self) {
        (self.answer, self.blocks) = (0, 0);
    }

    /// Counts more bytes of the answer.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), AgentError> {
        self.answer += bytes;
        check("an answer", self.answer, self.limits.answer, "bytes")?;
        check("a turn", self.before + self.answer, self.limits.turn, "bytes")
    }

    /// Counts more bytes of a tool call's arguments; `all` is their total.
    pub(crate) fn add_arguments(&mut self, bytes: usize, all: usize) -> Result<(), AgentError> {
        check("the arguments of a tool call", all, self.limits.arguments, "bytes")?;
        self.add(bytes)
    }

    /// Counts one more block or tool call.
    pub(crate) fn add_block(&mut self) -> Result<(), AgentError> {
        self.blocks += 1;
        check("an answer", self.blocks, self.limits.blocks, "blocks and tool calls")
    }
}

fn check(what: &'static str, found: usize, most: usize, unit: &'static str) -> Result<(), AgentError> {
    if found <= most { Ok(()) } else { Err(AgentError::TooLong { what, most, unit }) }
}
