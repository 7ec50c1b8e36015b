//! In what a server was found to differ from the standard, by what it complained about.

use std::sync::Arc;

use mainstem_http::Complaint;

use crate::settings::is_openai;

/// The deviations that a request makes allowance for.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(unnameable_types, reason = "it is the `Api::Dialect`")]
pub struct Dialect {
    /// Why the answer comes in one piece, if it does: o1-like models, organizations that may not
    /// stream.
    pub(crate) whole: Option<Arc<str>>,
    /// `stream_options` is refused: Mistral, older Azure versions.
    pub(crate) no_usage: bool,
    /// `max_tokens` must be called `max_completion_tokens`: OpenAI's reasoning models.
    pub(crate) completion_tokens: bool,
    /// The model's reasoning must be sent back with its tool calls: DeepSeek, Kimi.
    pub(crate) reasoning: bool,
}

impl mainstem_http::Dialect for Dialect {
    fn of(host: &str) -> Self {
        Self { completion_tokens: is_openai(host), ..Self::default() }
    }

    fn heeding(&self, complaint: &Complaint) -> Option<Self> {
        let Complaint { status, message, param, .. } = complaint;
        if !matches!(status, Some(400 | 422)) {
            return None;
        }
        let names = |field: &str| param == field || message.contains(field);
        let mut heeding = self.clone();
        if names("stream_options") {
            heeding.no_usage = true;
        } else if message.contains("Use 'max_completion_tokens'") {
            heeding.completion_tokens = true;
        } else if names("reasoning_content") {
            heeding.reasoning = true;
        } else if param == "stream" || message.contains("'stream'") {
            heeding.whole.get_or_insert_with(|| message.as_str().into());
        }
        (heeding != *self).then_some(heeding)
    }
}

#[cfg(test)]
mod tests;
