//! Why a tool failed, as the model reads it.

use std::{error::Error, fmt};

/// A failed tool call: data for the model, which may try again; never the end of the run.
///
/// Any error turns into one with `?`; the causes stand behind it. It is not itself an [`Error`], as
/// otherwise that could not be.
#[derive(Debug)]
pub struct ToolError {
    message: String,
}

impl ToolError {
    /// An error with a sentence for the model: what happened, and what to do instead.
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
            // Many errors already say their cause.
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
