//! What Gemini wants back with what it said, kept in a block's or call's `opaque` under one key.
//!
//! A [thought signature] goes back on the very part that it came on: parts with and without one may
//! not be merged. A block here is made of many streamed parts, of which the last is signed; so the
//! block remembers where that part began.
//!
//! [thought signature]: https://ai.google.dev/gemini-api/docs/thought-signatures

use mainstem_message::Opaque;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The one key of ours.
const KEY: &str = "gemini";

/// What is kept; empty for what another vendor said.
#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kept<'a> {
    /// The call's id, as Gemini gave it: the loop may have renamed it, and where Gemini gave none
    /// it gets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<&'a str>,
    /// The signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thought_signature: Option<&'a str>,
    /// Whether the signed part was a thought.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) thought: bool,
    /// Where in the block's text the signed part begins, in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) from: usize,
}

fn is_zero(from: &usize) -> bool {
    *from == 0
}

impl<'a> Kept<'a> {
    pub(crate) fn of(opaque: &'a Opaque) -> Self {
        opaque.get(KEY).and_then(|kept| Self::deserialize(kept).ok()).unwrap_or_default()
    }

    pub(crate) fn into_opaque(self) -> Opaque {
        match serde_json::to_value(self) {
            Ok(Value::Object(kept)) if !kept.is_empty() => Opaque::from_iter([(KEY.to_owned(), kept.into())]),
            _ => Opaque::new(),
        }
    }
}

#[cfg(test)]
mod tests;
