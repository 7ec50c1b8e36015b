//! The output of tools.

use mainstem_message::{ContentBlock, ToolState};
use serde::Serialize;

use crate::ToolError;

/// A tool's output: text and data, in order. It is appended to what the tool sent through
/// [`ToolContext::progress`](crate::ToolContext::progress), which the model sees as well.
///
/// ```
/// use mainstem_tool::{Json, ToolOutput, ToolState};
///
/// let text: ToolOutput = "two pages".into();
/// let json: ToolOutput = Json(vec![1, 2]).into();
/// assert_eq!(ToolOutput::failed("the index is locked").into_parts().1, ToolState::Error);
/// # let _ = (text, json);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    content: Vec<ContentBlock>,
    state: ToolState,
}

impl ToolOutput {
    /// Creates an output of blocks of text and data.
    pub fn new(content: Vec<ContentBlock>) -> Self {
        Self { content, state: ToolState::Success }
    }

    /// Creates an output without content: the model gets only the progress.
    pub fn empty() -> Self {
        Self::new(Vec::new())
    }

    /// Creates the output of a failed call, which may be longer than an error.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::from(text.into()).with_state(ToolState::Error)
    }

    /// Sets the state.
    #[must_use]
    pub fn with_state(mut self, state: ToolState) -> Self {
        self.state = state;
        self
    }

    /// Returns its blocks and its state.
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
///
/// ```
/// use mainstem_tool::{Json, ToolOutput};
///
/// #[derive(serde::Serialize)]
/// struct Found {
///     pages: u32,
/// }
///
/// let output = ToolOutput::from(Json(Found { pages: 2 }));
/// assert_eq!(output.into_parts().0[0].as_text(), Some(r#"{"pages":2}"#));
/// ```
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper to write in place")]
pub struct Json<T>(pub T);

impl<T: Serialize> From<Json<T>> for ToolOutput {
    /// Converts the value; one that can't be JSON becomes a failed output with the reason.
    fn from(Json(value): Json<T>) -> Self {
        match serde_json::to_string(&value) {
            Ok(text) => Self::from(text),
            Err(error) => Self::failed(ToolError::from(error).to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
