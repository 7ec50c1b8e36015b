//! A [background response]: the vendor writes it although no connection is left, and keeps it.
//!
//! Its events have numbers, and those after a number can be read again for some minutes; after
//! that, the response alone.
//!
//! [background response]: https://platform.openai.com/docs/guides/background

use mainstem_http::{Resumption, Url, extend};

use super::event::Begun;

/// What is known of one background response.
#[derive(Debug)]
pub(super) struct Background {
    id: String,
    /// The number of the last event.
    last: Option<u64>,
    /// Whether the model reasons, so that its encrypted reasoning is requested again.
    reasons: bool,
}

impl Background {
    /// Returns the background response that begins; `None` for one that ends with its connection.
    pub(super) fn of(response: Begun) -> Option<Self> {
        let reasons = response.reasoning.and_then(|reasoning| reasoning.effort).is_some();
        let is_kept = response.background == Some(true) && !response.id.is_empty();
        is_kept.then_some(Self { id: response.id, last: None, reasons })
    }

    /// Returns `true` for the number of an event that came before.
    pub(super) fn has_had(&self, number: Option<u64>) -> bool {
        number.is_some_and(|number| self.last.is_some_and(|last| number <= last))
    }

    /// Notes the number of an event.
    pub(super) fn came(&mut self, number: Option<u64>) {
        self.last = self.last.max(number);
    }

    /// Returns where it is read on; `responses` is where it was requested.
    pub(super) fn resumption(&self, responses: &Url) -> Resumption {
        let mut state = responses.clone();
        extend(&mut state, &[&self.id]);
        let mut cancel = state.clone();
        extend(&mut cancel, &["cancel"]);
        if self.reasons {
            state.query_pairs_mut().append_pair("include[]", "reasoning.encrypted_content");
        }
        let mut rest = state.clone();
        rest.query_pairs_mut().append_pair("stream", "true");
        if let Some(last) = self.last {
            rest.query_pairs_mut().append_pair("starting_after", &last.to_string());
        }
        Resumption { rest, state, cancel }
    }
}
