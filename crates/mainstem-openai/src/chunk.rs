//! The vendor's types, as far as they matter: a chunk of a stream, or the whole answer, which only differs in one word.
//!
//! Unknown fields are skipped unread. The strings are owned because each of them moves on into a delta: one allocation, no copy.
//! What is rare is boxed, for the size of these types is time: they are moved about while they are read.

mod text;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

pub(crate) use self::text::{Arguments, Content};

#[derive(Debug, Deserialize)]
pub(crate) struct Chunk {
    pub(crate) choices: Option<Vec<Choice>>,
    pub(crate) usage: Option<Box<Usage>>,
    pub(crate) error: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Choice {
    pub(crate) index: Option<u64>,
    /// In a stream.
    pub(crate) delta: Option<Delta>,
    /// In an answer of one piece.
    pub(crate) message: Option<Box<Delta>>,
    pub(crate) finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Delta {
    #[serde(default)]
    pub(crate) content: Content,
    pub(crate) refusal: Option<String>,
    /// DeepSeek, llama.cpp, xAI, older vLLM.
    pub(crate) reasoning_content: Option<String>,
    /// OpenRouter, Groq, Ollama, newer vLLM.
    pub(crate) reasoning: Option<String>,
    pub(crate) tool_calls: Option<Vec<ToolCall>>,
    /// The deprecated form of one tool call.
    pub(crate) function_call: Option<Box<Function>>,
}

/// A tool call, or a fragment of one.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ToolCall {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<String>,
    pub(crate) function: Option<Function>,
    /// Gemini's thought signature, which it wants back with the call.
    pub(crate) extra_content: Option<Box<Value>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Function {
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) arguments: Arguments,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's word for cached tokens.
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
