//! The vendor's types: [streaming events], and the response, which is also a response of one piece.
//!
//! An event is parsed for its type first, and for its fields only if its type is known. Unknown
//! fields are skipped unread.
//!
//! [streaming events]: https://platform.openai.com/docs/api-reference/responses-streaming

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The fields of every event.
#[derive(Debug, Deserialize)]
pub(crate) struct Head<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Option<Cow<'a, str>>,
    pub(crate) sequence_number: Option<u64>,
}

/// A response begins.
#[derive(Debug, Deserialize)]
pub(crate) struct Beginning {
    pub(crate) response: Begun,
}

/// What is read of a response that begins.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Begun {
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) background: Option<bool>,
    #[serde(default)]
    pub(crate) reasoning: Option<Reasoning>,
    #[serde(default)]
    pub(crate) tools: Option<Vec<Value>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Reasoning {
    pub(crate) effort: Option<Value>,
}

/// A text of an item: a piece of it (`….delta`), or all of it (`….done`), under a name that depends
/// on the kind of text.
#[derive(Debug, Deserialize)]
pub(crate) struct Fragment<'a> {
    #[serde(default)]
    pub(crate) output_index: u64,
    #[serde(borrow, alias = "text", alias = "refusal", alias = "arguments")]
    pub(crate) delta: Cow<'a, str>,
}

/// A part of a summary begins.
#[derive(Debug, Deserialize)]
pub(crate) struct SummaryPart {
    #[serde(default)]
    pub(crate) output_index: u64,
    #[serde(default)]
    pub(crate) summary_index: u64,
}

/// An item begins, or is complete.
#[derive(Debug, Deserialize)]
pub(crate) struct ItemEvent {
    #[serde(default)]
    pub(crate) output_index: u64,
    pub(crate) item: Item,
}

/// The end of a response.
#[derive(Debug, Deserialize)]
pub(crate) struct Ending {
    pub(crate) response: Response,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Response {
    pub(crate) status: Option<String>,
    pub(crate) error: Option<Value>,
    pub(crate) incomplete_details: Option<IncompleteDetails>,
    pub(crate) output: Option<Vec<Item>>,
    pub(crate) usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct IncompleteDetails {
    pub(crate) reason: Option<String>,
}

/// A message, a function call, reasoning, or an item of another type, which is ignored.
#[derive(Debug, Deserialize)]
pub(crate) struct Item(pub(crate) Map<String, Value>);

impl Item {
    pub(crate) fn kind(&self) -> &str {
        self.field("type").unwrap_or_default()
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// Returns the parts of `content` or `summary`: the field name of their text, and the text.
    pub(crate) fn texts(&self, list: &str) -> impl Iterator<Item = (&'static str, &str)> {
        let parts = self.0.get(list).and_then(Value::as_array).into_iter().flatten();
        parts.filter_map(|part| {
            let text = |name: &'static str| Some((name, part.get(name)?.as_str()?));
            text("text").or_else(|| text("refusal"))
        })
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Usage {
    input_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

/// The vendor's counts are like ours: details are parts of the sums.
impl From<Usage> for mainstem_message::Usage {
    fn from(usage: Usage) -> Self {
        let input = usage.input_tokens_details.unwrap_or_default();
        let output = usage.output_tokens_details.unwrap_or_default();
        let mut counted = Self::new(usage.input_tokens.unwrap_or(0), usage.output_tokens.unwrap_or(0));
        counted.cache_read_tokens = input.cached_tokens.unwrap_or(0);
        counted.cache_write_tokens = input.cache_write_tokens.unwrap_or(0);
        counted.reasoning_tokens = output.reasoning_tokens.unwrap_or(0);
        counted
    }
}
