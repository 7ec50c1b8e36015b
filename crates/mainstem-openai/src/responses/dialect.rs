//! What a model or an organization was found not to have, by what the server complained about.

use std::sync::Arc;

use mainstem_http::Complaint;

/// What a request leaves out.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(unnameable_types, reason = "it is the `Api::Dialect`")]
pub struct Dialect {
    /// Why the answer comes in one piece, if it does: organizations that may not stream a model.
    pub(crate) whole: Option<Arc<str>>,
    /// Encrypted reasoning is not asked for: models that do not reason refuse to include it.
    pub(crate) plain: bool,
    /// No summaries of reasoning, which only verified organizations get.
    pub(crate) no_summary: bool,
    /// The reasoning of earlier turns is left out: another account of the vendor encrypted it.
    pub(crate) forgetful: bool,
}

impl mainstem_http::Dialect for Dialect {
    fn heeding(&self, complaint: &Complaint) -> Option<Self> {
        let Complaint { status, message, param, words, .. } = complaint;
        if !matches!(status, Some(400 | 422)) {
            return None;
        }
        let mut heeding = self.clone();
        if words.iter().any(|word| word == "invalid_encrypted_content") {
            heeding.forgetful = true;
        } else if param == "include" || message.contains("Encrypted content is not supported") {
            heeding.plain = true;
        } else if param == "reasoning.summary" || message.contains("'reasoning.summary'") {
            heeding.no_summary = true;
        } else if param == "stream" || message.contains("'stream'") {
            heeding.whole.get_or_insert_with(|| message.as_str().into());
        }
        (heeding != *self).then_some(heeding)
    }

    fn lasting(&self) -> Self {
        // That another account encrypted the reasoning holds for one conversation.
        Self { forgetful: false, ..self.clone() }
    }
}

#[cfg(test)]
mod tests;
