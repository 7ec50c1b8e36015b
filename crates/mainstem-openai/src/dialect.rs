//! Deviations of a server from the standard, learned from its errors.

use std::sync::Arc;

use mainstem_http::ServerError;

use crate::settings::is_openai;

/// The deviations that requests respect.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(unnameable_types, reason = "it is the `Api::Dialect`")]
pub struct Dialect {
    /// Why the response comes in one piece, if it does: o1-like models, organizations that may not
    /// stream.
    pub(crate) whole: Option<Arc<str>>,
    /// `stream_options` is refused: Mistral, older Azure versions.
    pub(crate) no_usage: bool,
    /// `max_tokens` is named `max_completion_tokens`: OpenAI's reasoning models.
    pub(crate) completion_tokens: bool,
    /// The model's reasoning must be sent back with its tool calls: DeepSeek, Kimi.
    pub(crate) reasoning: bool,
}

impl mainstem_http::Dialect for Dialect {
    fn of(host: &str) -> Self {
        Self { completion_tokens: is_openai(host), ..Self::default() }
    }

    fn adapted_to(&self, error: &ServerError) -> Option<Self> {
        let ServerError { status, message, param, .. } = error;
        if !matches!(status, Some(400 | 422)) {
            return None;
        }
        let names = |field: &str| param == field || message.contains(field);
        let mut adapted = self.clone();
        if names("stream_options") {
            adapted.no_usage = true;
        } else if message.contains("Use 'max_completion_tokens'") {
            adapted.completion_tokens = true;
        } else if names("reasoning_content") {
            adapted.reasoning = true;
        } else if param == "stream" || message.contains("'stream'") {
            adapted.whole.get_or_insert_with(|| message.as_str().into());
        }
        (adapted != *self).then_some(adapted)
    }
}

#[cfg(test)]
mod tests;
