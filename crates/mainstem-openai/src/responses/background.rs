//! A [background response]: the vendor writes it although no connection is left, and keeps it.
//!
//! Its events have numbers, and those after a number can be read again for some minutes; after
//! that, the response alone.
//!
//! [background response]: https://platform.openai.com/docs/guides/background

use mainstem_http::{Resumption, Url, extend};
use serde_json::Value;

use super::event::Begun;

/// Returns the parts that items have only [on request], and need when they are sent back: of
/// reasoning, and of calls of the code interpreter if the tools have it.
///
/// [on request]: https://platform.openai.com/docs/api-reference/responses/create#responses-create-include
pub(super) fn include<'a>(reasons: bool, tools: impl IntoIterator<Item = &'a Value>) -> Vec<&'static str> {
    let runs_code = tools.into_iter().any(|tool| tool["type"] == "code_interpreter");
    let reasoning = reasons.then_some("reasoning.encrypted_content");
    reasoning.into_iter().chain(runs_code.then_some("code_interpreter_call.outputs")).collect()
}

/// What is known of one background response.
#[derive(Debug)]
pub(super) struct Background {
    id: String,
    /// The number of the last event.
    last: Option<u64>,
    /// What its items have only on request.
    include: Vec<&'static str>,
}

impl Background {
    /// Returns the background response that begins; `None` for one that ends with its connection.
    pub(super) fn of(response: Begun) -> Option<Self> {
        let reasons = response.reasoning.and_then(|reasoning| reasoning.effort).is_some();
        let include = include(reasons, response.tools.iter().flatten());
        let is_background = response.background == Some(true) && !response.id.is_empty();
        is_background.then_some(Self { id: response.id, last: None, include })
    }

    /// Returns `true` for the number of an event that came before.
    pub(super) fn has_had(&self, number: Option<u64>) -> bool {
        number.is_some_and(|number| self.last.is_some_and(|last| number <= last))
    }

    /// Returns it after the event of this number.
    pub(super) fn after(self, number: u64) -> Self {
        Self { last: self.last.max(Some(number)), ..self }
    }

    /// Returns the number of the last event.
    pub(super) fn last(&self) -> Option<u64> {
        self.last
    }

    /// Returns where it is read on; `responses` is where it was requested.
    pub(super) fn resumption(&self, responses: &Url) -> Resumption {
        let mut state = responses.clone();
        extend(&mut state, &[&self.id]);
        let mut cancel = state.clone();
        extend(&mut cancel, &["cancel"]);
        for part in &self.include {
            state.query_pairs_mut().append_pair("include[]", part);
        }
        let mut rest = state.clone();
        rest.query_pairs_mut().append_pair("stream", "true");
        if let Some(last) = self.last {
            rest.query_pairs_mut().append_pair("starting_after", &last.to_string());
        }
        Resumption { rest, state, cancel }
    }
}
