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
}

/// Returns `true` if the error is about the presence of a temperature rather than its value.
fn refuses_sampling(error: &ServerError) -> bool {
    let says = |words: &[&str]| words.iter().any(|word| error.message.contains(word));
    error.status == Some(400)
        && says(&["temperature", "top_p"])
        && says(&["deprecated", "not supported", "Extra inputs are not permitted"])
}

impl mainstem_http::Dialect for Dialect {
    fn adapted_to(&self, error: &ServerError) -> Option<Self> {
        (!self.no_sampling && refuses_sampling(error)).then_some(Self { no_sampling: true })
    }
}

#[cfg(test)]
mod tests;
