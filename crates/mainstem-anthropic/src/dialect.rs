//! Deviations of a model from the API, learned from its errors.

use mainstem_http::ServerError;

/// The deviations that requests respect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(unnameable_types, reason = "it is the `Api::Dialect`")]
pub struct Dialect {
    /// `temperature` and `top_p` are refused at any value: [Claude Opus 4.7 and later][changes].
    ///
    /// [changes]: https://platform.claude.com/docs/en/about-claude/models/migration-guide
    pub(crate) no_sampling: bool,
    /// A thinking budget is refused, so that an effort counts if there is one: [Claude Opus 4.7 and
    /// later][changes].
    ///
    /// [changes]: https://platform.claude.com/docs/en/about-claude/models/migration-guide
    pub(crate) no_budget: bool,
    /// An effort, or the thinking that comes with it, is refused: Claude 4.5 and earlier.
    pub(crate) no_effort: bool,
    /// `cache_control` is refused: servers without a cache.
    pub(crate) no_caching: bool,
}

impl mainstem_http::Dialect for Dialect {
    fn adapted_to(&self, error: &ServerError) -> Option<Self> {
        let says = |words: &[&str]| words.iter().any(|word| error.message.contains(word));
        let is_refused = says(&["deprecated", "not support", "Extra inputs are not permitted"]);
        if error.status != Some(400) || !is_refused {
            return None;
        }
        let mut adapted = *self;
        if says(&["cache_control"]) {
            adapted.no_caching = true;
        } else if says(&["thinking.type.enabled", "budget_tokens"]) {
            adapted.no_budget = true;
        } else if says(&["the effort parameter", "adaptive thinking", "thinking.type.adaptive"])
            || says(&["output_config: Extra inputs", "output_config.effort: Extra inputs"])
        {
            adapted.no_effort = true;
        } else if says(&["temperature", "top_p"]) {
            adapted.no_sampling = true;
        }
        (adapted != *self).then_some(adapted)
    }
}

#[cfg(test)]
mod tests;
