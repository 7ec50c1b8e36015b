//! Errors of tools, which models read.

use std::{error::Error, fmt};

/// A failed tool call: data for the model, which may retry. The run continues.
///
/// Any error converts into one with `?`, with its causes. It does not implement [`Error`] itself,
/// because that conversion would conflict with it.
///
/// ```
/// use mainstem_tool::ToolError;
///
/// fn pages(text: &str) -> Result<u32, ToolError> {
///     let pages: u32 = text.parse()?;
///     if pages == 0 {
///         return Err(ToolError::new("pages is 0: name at least one"));
///     }
///     Ok(pages)
/// }
/// assert_eq!(pages("0").unwrap_err().to_string(), "pages is 0: name at least one");
/// assert!(pages("two").is_err());
/// ```
#[derive(Debug)]
pub struct ToolError {
    message: String,
}

impl ToolError {
    /// Creates an error with a sentence for the model: what happened, and what to do instead.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Many errors have their cause in the message.
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            source = cause.source();
        }
        Self { message }
    }
}

#[cfg(test)]
mod tests;
