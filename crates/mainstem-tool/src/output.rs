//! What a tool answers.

use mainstem_message::{ContentBlock, ToolState};
use serde::Serialize;

use crate::ToolError;

/// A tool's answer: text and data, in order. It is added to what the tool sent through
/// [`ToolContext::progress`](crate::ToolContext::progress), which the model sees as well.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    content: Vec<ContentBlock>,
    state: ToolState,
}

impl ToolOutput {
    /// Blocks of text and data.
    pub fn new(content: Vec<ContentBlock>) -> Self {
        Self { content, state: ToolState::Success }
    }

    /// Nothing more than what was sent as progress.
    pub fn empty() -> Self {
        Self::new(Vec::new())
    }

    /// An answer that tells of a failure, with more to say than an error.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::from(text.into()).with_state(ToolState::Error)
    }

    /// The same answer with another state.
    #[must_use]
    pub fn with_state(mut self, state: ToolState) -> Self {
        self.state = state;
        self
    }

    /// Its parts.
    pub fn into_parts(self) -> (Vec<ContentBlock>, ToolState) {
        (self.content, self.state)
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::new(vec![ContentBlock::text(text)])
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<()> for ToolOutput {
    fn from((): ()) -> Self {
        Self::empty()
    }
}

impl From<ContentBlock> for ToolOutput {
    fn from(block: ContentBlock) -> Self {
        Self::new(vec![block])
    }
}

/// A value that the model gets as JSON.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper to write in place")]
pub struct Json<T>(pub T);

impl<T: Serialize> From<Json<T>> for ToolOutput {
    /// A value that cannot be JSON becomes a failure that says why.
    fn from(Json(value): Json<T>) -> Self {
        match serde_json::to_string(&value) {
            Ok(text) => Self::from(text),
            Err(error) => Self::failed(ToolError::from(error).to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
