//! Features that a model or an organization lacks, learned from the server's errors.

use std::sync::Arc;

use mainstem_http::{ServerError, Service};

use crate::dialect::{OWN_FIELDS, is_unsupported, takes_own_fields};

/// The features that a request leaves out.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(unnameable_types, reason = "it is the `Api::Dialect`")]
pub struct Dialect {
    /// Why the response comes in one piece, if it does: organizations that may not stream a model.
    pub(crate) whole: Option<Arc<str>>,
    /// Encrypted reasoning is not requested: models that do not reason refuse to include it.
    pub(crate) plain: bool,
    /// No summaries of reasoning, which only verified organizations get.
    pub(crate) no_summary: bool,
    /// No effort: models that do not reason refuse it.
    pub(crate) no_effort: bool,
    /// The reasoning of earlier turns is left out: another account of the vendor encrypted it.
    pub(crate) omits_reasoning: bool,
    /// No background responses: organizations for which the vendor retains no data have none.
    pub(crate) no_background: bool,
    /// OpenAI's own fields are sent: see [`takes_own_fields`].
    pub(crate) own_fields: bool,
}

impl mainstem_http::Dialect for Dialect {
    fn of(service: &Service, host: &str) -> Self {
        Self { own_fields: takes_own_fields(service, host), ..Self::default() }
    }

    fn adapted_to(&self, error: &ServerError) -> Option<Self> {
        let ServerError { status, message, param, words, .. } = error;
        if !matches!(status, Some(400 | 422)) {
            return None;
        }
        let names = |field: &str| param.contains(field) || message.contains(field);
        let mut adapted = self.clone();
        if self.own_fields && OWN_FIELDS.into_iter().any(names) {
            adapted.own_fields = false;
        } else if words.iter().any(|word| word == "invalid_encrypted_content") {
            adapted.omits_reasoning = true;
        } else if !self.no_background && is_about_background(param, message) {
            adapted.no_background = true;
        } else if param == "include" || message.contains("Encrypted content is not supported") {
            adapted.plain = true;
        } else if param == "reasoning.summary" || message.contains("'reasoning.summary'") {
            adapted.no_summary = true;
        } else if (param == "reasoning.effort" || message.contains("'reasoning.effort'"))
            && is_unsupported(message)
        {
            adapted.no_effort = true;
        } else if param == "stream" || message.contains("'stream'") {
            adapted.whole.get_or_insert_with(|| message.as_str().into());
        }
        (adapted != *self).then_some(adapted)
    }

    fn lasting(&self) -> Self {
        // The account that encrypted the reasoning concerns one conversation.
        Self { omits_reasoning: false, ..self.clone() }
    }
}

/// Returns `true` for a refusal to write a response in the background, or to store it.
fn is_about_background(param: &str, message: &str) -> bool {
    let names = ["background", "Background", "Zero Data Retention"];
    matches!(param, "background" | "store") || names.iter().any(|name| message.contains(name))
}

#[cfg(test)]
mod tests;
