//! The vendor's types: a [GenerateContentResponse], a chunk of a stream or the whole response.
//!
//! Unknown fields are skipped unread. Every field may be absent, or null.
//!
//! [GenerateContentResponse]: https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse

use mainstem_http::Text;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, value::RawValue};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Chunk<'a> {
    #[serde(borrow)]
    pub(crate) candidates: Option<Vec<Candidate<'a>>>,
    pub(crate) prompt_feedback: Option<PromptFeedback>,
    pub(crate) usage_metadata: Option<Usage>,
    pub(crate) error: Option<IgnoredAny>,
}

impl Chunk<'_> {
    /// Returns `true` if it has no answer, so that it may be an error instead.
    pub(crate) fn answers_nothing(&self) -> bool {
        let Self { candidates, prompt_feedback, usage_metadata, error } = self;
        error.is_some() || candidates.is_none() && prompt_feedback.is_none() && usage_metadata.is_none()
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Candidate<'a> {
    pub(crate) index: Option<u64>,
    #[serde(borrow)]
    pub(crate) content: Option<Content<'a>>,
    pub(crate) finish_reason: Option<String>,
    pub(crate) finish_message: Option<String>,
    pub(crate) grounding_metadata: Option<Grounding>,
}

/// What an answer is based on.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Grounding {
    pub(crate) web_search_queries: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Content<'a> {
    #[serde(borrow)]
    pub(crate) parts: Option<Vec<Part<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part<'a> {
    #[serde(borrow)]
    pub(crate) text: Option<Text<'a>>,
    pub(crate) inline_data: Option<Blob>,
    #[serde(borrow)]
    pub(crate) function_call: Option<FunctionCall<'a>>,
    pub(crate) thought: Option<bool>,
    pub(crate) thought_signature: Option<String>,
    // The service's own actions.
    executable_code: Option<Value>,
    code_execution_result: Option<Value>,
    tool_call: Option<Value>,
    tool_response: Option<Value>,
}

impl Part<'_> {
    /// Takes the part if it is about an action of the service itself: its fields, as they came.
    pub(crate) fn take_of_service(&mut self) -> Option<Map<String, Value>> {
        let fields = [
            ("executableCode", self.executable_code.take()),
            ("codeExecutionResult", self.code_execution_result.take()),
            ("toolCall", self.tool_call.take()),
            ("toolResponse", self.tool_response.take()),
        ];
        let mut part: Map<_, _> =
            fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        if part.is_empty() {
            return None;
        }
        let signature =
            self.thought_signature.take().map(|signature| ("thoughtSignature".to_owned(), signature.into()));
        part.extend(signature);
        Some(part)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Blob {
    pub(crate) mime_type: String,
    pub(crate) data: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct FunctionCall<'a> {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    /// As it was written, in one piece.
    #[serde(borrow)]
    pub(crate) args: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptFeedback {
    pub(crate) block_reason: Option<String>,
    /// Only in Vertex AI.
    pub(crate) block_reason_message: Option<String>,
}

/// The counts of a chunk, alone.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    pub(crate) usage_metadata: Option<Usage>,
}

/// The counts so far. Chunks in the middle may leave out some of them, or all.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Usage {
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
}

impl Usage {
    /// Applies the counts of a later chunk.
    pub(crate) fn then(self, later: Self) -> Self {
        Self {
            prompt_token_count: later.prompt_token_count.or(self.prompt_token_count),
            cached_content_token_count: later.cached_content_token_count.or(self.cached_content_token_count),
            candidates_token_count: later.candidates_token_count.or(self.candidates_token_count),
            thoughts_token_count: later.thoughts_token_count.or(self.thoughts_token_count),
            tool_use_prompt_token_count: later
                .tool_use_prompt_token_count
                .or(self.tool_use_prompt_token_count),
        }
    }

    /// Returns the usage; `None` without counts, as in chunks that only name the kind of traffic.
    pub(crate) fn counted(self) -> Option<mainstem_message::Usage> {
        (self.prompt_token_count.or(self.candidates_token_count).is_some()).then(|| self.into())
    }
}

/// Converts the counts. [The API's
/// prompt](https://ai.google.dev/api/generate-content#UsageMetadata) includes cached tokens, as
/// ours does, but not the prompts of tools that the service ran; its candidates leave out the
/// thoughts, which our output includes.
impl From<Usage> for mainstem_message::Usage {
    fn from(usage: Usage) -> Self {
        let count = |count: Option<u64>| count.unwrap_or(0);
        let input = count(usage.prompt_token_count).saturating_add(count(usage.tool_use_prompt_token_count));
        let thoughts = count(usage.thoughts_token_count);
        let mut counted = Self::new(input, count(usage.candidates_token_count).saturating_add(thoughts));
        counted.cache_read_tokens = count(usage.cached_content_token_count);
        counted.reasoning_tokens = thoughts;
        counted
    }
}
