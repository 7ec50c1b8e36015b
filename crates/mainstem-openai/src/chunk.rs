//! The vendor's types: a chunk of a stream, or the whole response, which differs in one field name.
//!
//! Unknown fields are skipped unread. Text is borrowed if it has no escapes, so that its place in
//! the payload is known. Rare fields are boxed, because these types are moved while they are read,
//! which takes time in proportion to their size.

mod text;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

pub(crate) use self::text::{Arguments, Content};

#[derive(Debug, Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow)]
    pub(crate) choices: Option<Vec<Choice<'a>>>,
    pub(crate) usage: Option<Box<Usage>>,
    pub(crate) error: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Choice<'a> {
    pub(crate) index: Option<u64>,
    /// In a stream.
    #[serde(borrow)]
    pub(crate) delta: Option<Delta<'a>>,
    /// In a response of one piece.
    #[serde(borrow)]
    pub(crate) message: Option<Box<Delta<'a>>>,
    pub(crate) finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(crate) content: Content<'a>,
    pub(crate) refusal: Option<String>,
    /// DeepSeek, llama.cpp, xAI, older vLLM.
    #[serde(borrow, default)]
    pub(crate) reasoning_content: Content<'a>,
    /// OpenRouter, Groq, Ollama, newer vLLM.
    #[serde(borrow, default)]
    pub(crate) reasoning: Content<'a>,
    #[serde(borrow)]
    pub(crate) tool_calls: Option<Vec<ToolCall<'a>>>,
    /// The deprecated form of one tool call.
    #[serde(borrow)]
    pub(crate) function_call: Option<Box<Function<'a>>>,
}

/// A tool call, or a fragment of one.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ToolCall<'a> {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<String>,
    #[serde(borrow)]
    pub(crate) function: Option<Function<'a>>,
    /// Gemini's thought signature, which must be sent back with the call.
    pub(crate) extra_content: Option<Box<Value>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Function<'a> {
    pub(crate) name: Option<String>,
    #[serde(borrow, default)]
    pub(crate) arguments: Arguments<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name for cached tokens.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    /// OpenRouter's.
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl From<Usage> for mainstem_message::Usage {
    fn from(usage: Usage) -> Self {
        let prompt = usage.prompt_tokens_details.unwrap_or_default();
        let completion = usage.completion_tokens_details.unwrap_or_default();
        let mut counted = Self::new(usage.prompt_tokens.unwrap_or(0), usage.completion_tokens.unwrap_or(0));
        counted.cache_read_tokens = prompt.cached_tokens.or(usage.prompt_cache_hit_tokens).unwrap_or(0);
        counted.cache_write_tokens = prompt.cache_write_tokens.unwrap_or(0);
        counted.reasoning_tokens = completion.reasoning_tokens.unwrap_or(0);
        counted
    }
}
