//! What Gemini needs back with its content, under one key of a block's or call's `opaque`.
//!
//! A [thought signature] is sent back on the very part that it came on: parts with and without one
//! may not be merged. A block here consists of many streamed parts, of which the last is signed; so
//! the block stores where that part began.
//!
//! [thought signature]: https://ai.google.dev/gemini-api/docs/thought-signatures

use mainstem_message::Opaque;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The key of this crate in the opaque fields.
const KEY: &str = "gemini";

/// The stored values; empty for content of another vendor.
#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stored<'a> {
    /// The call's id, as Gemini sent it: the loop may have renamed the call; without an id from
    /// Gemini none is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<&'a str>,
    /// The signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thought_signature: Option<&'a str>,
    /// Whether the signed part was a thought.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) thought: bool,
    /// The offset of the signed part in the block's text, in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) from: usize,
    /// A part about an action of the service itself, which is sent back as it came.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) part: Map<String, Value>,
}

fn is_zero(from: &usize) -> bool {
    *from == 0
}

impl<'a> Stored<'a> {
    pub(crate) fn of(opaque: &'a Opaque) -> Self {
        opaque.get(KEY).and_then(|stored| Self::deserialize(stored).ok()).unwrap_or_default()
    }

    pub(crate) fn into_opaque(self) -> Opaque {
        match serde_json::to_value(self) {
            Ok(Value::Object(stored)) if !stored.is_empty() => {
                Opaque::from_iter([(KEY.to_owned(), stored.into())])
            }
            _ => Opaque::new(),
        }
    }
}

#[cfg(test)]
mod tests;
