//! Deviations of a server from the standard, learned from its errors.

use std::sync::Arc;

use mainstem_http::{ServerError, Service};

use crate::service::{AZURE, DEEPSEEK, GROQ, MISTRAL, OPENAI, OPENROUTER};

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
    /// `seed` is named `random_seed`: Mistral, which refuses unknown fields.
    pub(crate) random_seed: bool,
    /// A thinking budget is sent as `reasoning.max_tokens`: OpenRouter.
    pub(crate) thinking_budget: bool,
    /// `reasoning_effort` is left out: models that do not reason refuse it.
    pub(crate) no_effort: bool,
    /// OpenAI's own fields are sent: see [`takes_own_fields`].
    pub(crate) own_fields: bool,
}

const STANDARD: Dialect = Dialect {
    whole: None,
    no_usage: false,
    completion_tokens: false,
    reasoning: false,
    random_seed: false,
    thinking_budget: false,
    no_effort: false,
    own_fields: false,
};

/// The deviations that vendors document, by the name of their service.
const DOCUMENTED: &[(&str, Dialect)] = &[
    // https://console.groq.com/docs/api-reference#chat: `max_tokens` is deprecated.
    (GROQ.provider, Dialect { completion_tokens: true, ..STANDARD }),
    // https://api-docs.deepseek.com/guides/thinking_mode
    (DEEPSEEK.provider, Dialect { reasoning: true, ..STANDARD }),
    // https://openrouter.ai/docs/use-cases/reasoning-tokens
    (OPENROUTER.provider, Dialect { thinking_budget: true, ..STANDARD }),
    // https://docs.mistral.ai/api: the last chunk has the usage unasked.
    (MISTRAL.provider, Dialect { no_usage: true, random_seed: true, ..STANDARD }),
];

impl mainstem_http::Dialect for Dialect {
    fn of(service: &Service, host: &str) -> Self {
        let documented = DOCUMENTED.iter().find(|(provider, _)| *provider == service.provider);
        let dialect = documented.map_or(STANDARD, |(_, dialect)| dialect.clone());
        Self {
            completion_tokens: dialect.completion_tokens || OPENAI.is_key_required(host),
            own_fields: takes_own_fields(service, host),
            ..dialect
        }
    }

    fn adapted_to(&self, error: &ServerError) -> Option<Self> {
        let ServerError { status, message, param, .. } = error;
        if !matches!(status, Some(400 | 422)) {
            return None;
        }
        let names = |field: &str| param.contains(field) || message.contains(field);
        let mut adapted = self.clone();
        if self.own_fields && OWN_FIELDS.into_iter().any(names) {
            adapted.own_fields = false;
        } else if names("stream_options") {
            adapted.no_usage = true;
        } else if message.contains("Use 'max_completion_tokens'") {
            adapted.completion_tokens = true;
        } else if names("reasoning_effort") && is_unsupported(message) {
            adapted.no_effort = true;
        } else if names("reasoning_content") {
            adapted.reasoning = true;
        } else if param == "stream" || message.contains("'stream'") {
            adapted.whole.get_or_insert_with(|| message.as_str().into());
        }
        (adapted != *self).then_some(adapted)
    }
}

/// Fields that are OpenAI's own: servers that follow its API may refuse them.
pub(crate) const OWN_FIELDS: [&str; 2] = ["prompt_cache_key", "include_obfuscation"];

/// Returns `true` if a server takes [`OWN_FIELDS`]: OpenAI's, and [Azure's][azure] API v1.
///
/// [azure]: https://learn.microsoft.com/azure/foundry/reference/rest/chat-create-chat-completion
pub(crate) fn takes_own_fields(service: &Service, host: &str) -> bool {
    service.provider == AZURE.provider || OPENAI.is_key_required(host)
}

/// Returns `true` if a parameter is refused at any value.
pub(crate) fn is_unsupported(message: &str) -> bool {
    ["Unsupported parameter", "Unrecognized request argument", "is not supported with this model"]
        .iter()
        .any(|words| message.contains(words))
}

#[cfg(test)]
mod tests;
