//! The vendor's types: a line of a stream, or the whole response, which has the same form.
//!
//! The source is `ChatResponse` in Ollama's [API
//! types](https://github.com/ollama/ollama/blob/main/api/types.go). Unknown fields are skipped
//! unread.

use mainstem_http::Text;
use mainstem_message::Usage;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

#[derive(Debug, Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow)]
    pub(crate) message: Option<Message<'a>>,
    pub(crate) done: Option<bool>,
    /// Absent in older versions.
    pub(crate) done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    prompt_eval_cached_count: Option<u64>,
    eval_count: Option<u64>,
    pub(crate) error: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) content: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) thinking: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) tool_calls: Option<Vec<ToolCall<'a>>>,
}

/// A whole call: calls come in one piece.
#[derive(Debug, Deserialize)]
pub(crate) struct ToolCall<'a> {
    /// Present in newer versions.
    pub(crate) id: Option<String>,
    #[serde(borrow)]
    pub(crate) function: Function<'a>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Function<'a> {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Chunk<'_> {
    /// Returns the counts. The prompt includes cached tokens, the output includes the thinking,
    /// which has no count of its own; a count of zero is left out.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let Self { prompt_eval_count: read, eval_count: written, prompt_eval_cached_count: cached, .. } =
            self;
        read.or(*written)?;
        let mut usage = Usage::new(read.unwrap_or(0), written.unwrap_or(0));
        usage.cache_read_tokens = cached.unwrap_or(0);
        Some(usage)
    }
}

impl Function<'_> {
    /// Returns the arguments as JSON. They are an object; proxies of other APIs send a string with
    /// one.
    pub(crate) fn arguments(&self) -> String {
        let written = self.arguments.map(RawValue::get).unwrap_or_default();
        serde_json::from_str(written).unwrap_or_else(|_| written.to_owned())
    }
}
