//! What is asked of a model.

use std::sync::Arc;

use mainstem_message::{Message, ToolSpec};
use serde_json::{Map, Value};

/// One call to a model: the whole conversation, for a model remembers nothing.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    /// The id of the agent that asks; for scripts and traces, no vendor sees it.
    pub agent: Arc<str>,
    /// The instructions.
    pub system: Option<Arc<str>>,
    /// The conversation, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The tools on offer.
    pub tools: Arc<[ToolSpec]>,
    /// Whether it may, must or must not call one.
    pub tool_choice: ToolChoice,
    /// How it shall answer.
    pub options: Arc<ModelOptions>,
}

/// Whether the model may, must or must not call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// None.
    None,
    /// At least one.
    Required,
    /// This one.
    Tool(String),
}

/// How a model shall answer. What is `None` is left to the vendor.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelOptions {
    /// Sampling temperature, in the vendor's range.
    pub temperature: Option<f64>,
    /// Nucleus sampling, 0 to 1.
    pub top_p: Option<f64>,
    /// Most tokens of one answer.
    pub max_tokens: Option<u32>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Seed for repeatable sampling, where the vendor has it.
    pub seed: Option<u64>,
    /// How hard to think: the vendor's word (`low`, `medium`, `high`).
    pub reasoning_effort: Option<String>,
    /// The form of the answer.
    pub response_format: Option<ResponseFormat>,
    /// Whether several tools may be called in one answer.
    pub parallel_tool_calls: Option<bool>,
    /// Further fields of the vendor's request, set as they are; they win over ours.
    pub extra: Map<String, Value>,
}

impl ModelOptions {
    /// Everything left to the vendor. The fields are public: set what you need.
    pub fn new() -> Self {
        Self::default()
    }

    /// These options, with whatever `over` sets in front.
    #[must_use]
    pub fn overlaid(&self, over: &Self) -> Self {
        let mut extra = self.extra.clone();
        extra.extend(over.extra.clone());
        Self {
            temperature: over.temperature.or(self.temperature),
            top_p: over.top_p.or(self.top_p),
            max_tokens: over.max_tokens.or(self.max_tokens),
            stop: if over.stop.is_empty() { self.stop.clone() } else { over.stop.clone() },
            seed: over.seed.or(self.seed),
            reasoning_effort: over.reasoning_effort.clone().or_else(|| self.reasoning_effort.clone()),
            response_format: over.response_format.clone().or_else(|| self.response_format.clone()),
            parallel_tool_calls: over.parallel_tool_calls.or(self.parallel_tool_calls),
            extra,
        }
    }
}

/// The form of an answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ResponseFormat {
    /// Any JSON object.
    JsonObject,
    /// JSON of this schema.
    JsonSchema {
        /// What the vendor calls it.
        name: String,
        /// The schema.
        schema: Arc<Value>,
        /// Whether the vendor must hold the schema.
        strict: bool,
    },
}
