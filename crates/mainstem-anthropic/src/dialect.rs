//! In what a model was found to differ from the API, by what it complained about.

use mainstem_http::Complaint;

/// The deviations that a request makes allowance for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Dialect {
    /// `temperature` and `top_p` are refused, whatever they are: [Claude Opus 4.7 and later][changes].
    ///
    /// [changes]: https://platform.claude.com/docs/en/about-claude/models/migration-guide
    pub(crate) no_sampling: bool,
}

/// Whether the complaint is that there is a temperature at all, rather than about its value.
pub(crate) fn refuses_sampling(complaint: &Complaint) -> bool {
    let says = |words: &[&str]| words.iter().any(|word| complaint.message.contains(word));
    complaint.status == Some(400)
        && says(&["temperature", "top_p"])
        && says(&["deprecated", "not supported", "Extra inputs are not permitted"])
}

#[cfg(test)]
mod tests;
