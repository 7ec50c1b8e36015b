//! In what a model was found to differ from the API, by what it complained about.

use mainstem_http::Complaint;

/// The deviations that a request makes allowance for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(unnameable_types, reason = "it is the `Api::Dialect`")]
pub struct Dialect {
    /// `temperature` and `top_p` are refused, whatever they are: [Claude Opus 4.7 and
    /// later][changes].
    ///
    /// [changes]: https://platform.claude.com/docs/en/about-claude/models/migration-guide
    pub(crate) no_sampling: bool,
}

/// Returns `true` if the complaint is that there is a temperature at all, rather than about its
/// value.
fn refuses_sampling(complaint: &Complaint) -> bool {
    let says = |words: &[&str]| words.iter().any(|word| complaint.message.contains(word));
    complaint.status == Some(400)
        && says(&["temperature", "top_p"])
        && says(&["deprecated", "not supported", "Extra inputs are not permitted"])
}

impl mainstem_http::Dialect for Dialect {
    fn heeding(&self, complaint: &Complaint) -> Option<Self> {
        (!self.no_sampling && refuses_sampling(complaint)).then_some(Self { no_sampling: true })
    }
}

#[cfg(test)]
mod tests;
