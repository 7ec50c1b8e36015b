//! The request of a model call.

mod size;

use std::sync::Arc;

use mainstem_message::{Message, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value};

pub use self::size::{size_of, size_of_tool};

/// The output of a request without a limit, in tokens.
const USUAL_OUTPUT: u64 = 4_096;

/// One call of a model, with the whole conversation: models are stateless.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    /// The id of the calling agent, for scripts and traces; vendors do not get it.
    pub agent: Arc<str>,
    /// The key of the calling instance, `root` for the root, for scripts; vendors do not get it.
    pub agent_key: Arc<str>,
    /// The session of the call, for the order of calls that wait
    /// ([`RateLimited`](crate::RateLimited)); vendors do not get it.
    pub session: Arc<str>,
    /// The conversation, whose growing prompt the vendor should cache: the same text in all of its
    /// requests, of at most 64 characters. Vendors get it, so it is not the id of a session. `None`
    /// for a prompt that is sent once.
    pub cache_key: Option<Arc<str>>,
    /// The instructions.
    pub system: Option<Arc<str>>,
    /// The conversation, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The available tools.
    pub tools: Arc<[ToolSpec]>,
    /// Whether it may, must or must not call one.
    pub tool_choice: ToolChoice,
    /// Options of the answer.
    pub options: Arc<ModelOptions>,
}

/// Whether the model may, must or must not call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool.
    None,
    /// At least one tool.
    Required,
    /// This tool.
    Tool(String),
}

/// Options of a model's answer. Fields that are `None` are left to the vendor.
///
/// ```
/// use mainstem_model::ModelOptions;
///
/// let mut of_all = ModelOptions::new();
/// (of_all.temperature, of_all.max_output_tokens) = (Some(0.2), Some(2_000));
/// let mut of_one = ModelOptions::new();
/// of_one.temperature = Some(0.9);
///
/// let both = of_all.overlaid(&of_one);
/// assert_eq!((both.temperature, both.max_output_tokens), (Some(0.9), Some(2_000)));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelOptions {
    /// Sampling temperature, in the vendor's range.
    pub temperature: Option<f64>,
    /// Nucleus sampling, 0 to 1.
    pub top_p: Option<f64>,
    /// The maximum number of tokens of one answer, with the model's thinking.
    pub max_output_tokens: Option<u32>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Seed for repeatable sampling, where the vendor has it.
    pub seed: Option<u64>,
    /// How hard the model thinks, as the vendor names it (`none`, `low`, `medium`, `high`).
    pub effort: Option<String>,
    /// The most tokens that the model thinks with in one answer; 0 for none. With both a budget and
    /// an effort, an API gets the one that it knows, or the budget if it knows both.
    pub thinking_budget: Option<u32>,
    /// The format of the answer.
    pub response_format: Option<ResponseFormat>,
    /// Whether several tools may be called in one answer.
    pub parallel_tool_calls: Option<bool>,
    /// Tools that the vendor has, and runs itself while the model answers: `web_search`,
    /// `code_execution`. A call of an API that lacks one fails.
    pub server_tools: Option<Vec<String>>,
    /// How long the vendor caches the prompt of a conversation, where that can be chosen:
    /// Anthropic's API. Five minutes by default.
    pub prompt_cache: Option<PromptCache>,
    /// What happens when an answer is cut. By default the call is repeated.
    pub on_cut: Option<OnCut>,
    /// Further fields of the vendor's request, which override ours.
    pub extra: Map<String, Value>,
}

impl ModelOptions {
    /// Creates options that leave everything to the vendor. The fields are public: set what you
    /// need.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the most tokens of one answer: `max_output_tokens`, or 4,096, which most models can
    /// write. An estimate, for budgets and the room of a prompt.
    #[must_use]
    pub fn output_estimate(&self) -> u64 {
        self.max_output_tokens.map_or(USUAL_OUTPUT, u64::from)
    }

    /// Returns these options, overridden by those that `over` sets.
    #[must_use]
    pub fn overlaid(&self, over: &Self) -> Self {
        let mut extra = self.extra.clone();
        extra.extend(over.extra.clone());
        Self {
            temperature: over.temperature.or(self.temperature),
            top_p: over.top_p.or(self.top_p),
            max_output_tokens: over.max_output_tokens.or(self.max_output_tokens),
            stop: if over.stop.is_empty() { self.stop.clone() } else { over.stop.clone() },
            seed: over.seed.or(self.seed),
            effort: over.effort.clone().or_else(|| self.effort.clone()),
            thinking_budget: over.thinking_budget.or(self.thinking_budget),
            response_format: over.response_format.clone().or_else(|| self.response_format.clone()),
            parallel_tool_calls: over.parallel_tool_calls.or(self.parallel_tool_calls),
            server_tools: over.server_tools.clone().or_else(|| self.server_tools.clone()),
            prompt_cache: over.prompt_cache.or(self.prompt_cache),
            on_cut: over.on_cut.or(self.on_cut),
            extra,
        }
    }

    /// Returns the effort for an API that has no thinking budgets.
    ///
    /// # Errors
    /// If only a budget is set, and not to 0. The text continues after the server's name.
    pub fn effort_without_budget(&self) -> Result<Option<&str>, String> {
        match (self.effort.as_deref(), self.thinking_budget) {
            (None, Some(0)) => Ok(Some("none")),
            (None, Some(_)) => Err("takes no thinking_budget; set effort, too, which counts here".into()),
            (effort, _) => Ok(effort),
        }
    }

    /// Returns the server tools as an API has them, of all that it has.
    ///
    /// # Errors
    /// If the API lacks one. The text continues after the server's name.
    pub fn known_server_tools<T: Clone>(&self, all: &[(&str, T)]) -> Result<Vec<T>, String> {
        let known = |tool: &String| {
            let found = all.iter().find(|(name, _)| name == tool).map(|(_, known)| known.clone());
            let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
            let has = if names.is_empty() { "none".to_owned() } else { names.join(" and ") };
            found.ok_or_else(|| format!("has no server tool {tool:?}; this API has {has}"))
        };
        self.server_tools.iter().flatten().map(known).collect()
    }

    /// Checks that a thinking budget leaves room for an answer.
    ///
    /// # Errors
    /// If it is not below `max_output_tokens`.
    pub fn check_thinking_budget(&self) -> Result<(), String> {
        match (self.thinking_budget, self.max_output_tokens) {
            (Some(budget), Some(most)) if budget > 0 && budget >= most => Err(format!(
                "thinking_budget must be below max_output_tokens, which counts thinking: {budget} is not below {most}"
            )),
            _ => Ok(()),
        }
    }
}

/// How long a vendor caches the prompt of a conversation after its last use.
///
/// At Anthropic, reading from the cache costs a tenth of the input or less; writing costs a quarter
/// more than the input for five minutes, and twice the input for an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub enum PromptCache {
    /// Every prompt is read anew.
    #[serde(rename = "off")]
    Off,
    /// Five minutes.
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    /// An hour.
    #[serde(rename = "1h")]
    OneHour,
}

impl PromptCache {
    /// The names in settings, with their values.
    pub const NAMES: [(&str, Self); 3] =
        [("off", Self::Off), ("5m", Self::FiveMinutes), ("1h", Self::OneHour)];
}

/// What happens when a model call fails after the first part of its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OnCut {
    /// The call is repeated, or another model is called; what the failed attempt has said is taken
    /// back.
    #[default]
    Repeat,
    /// The answer is read on from where it was cut, without being paid for twice, where the vendor
    /// keeps it; elsewhere, and once the vendor has it no longer, as for [`Repeat`](Self::Repeat).
    ///
    /// The vendor has to store the answer for that. OpenAI's Responses API does so for
    /// [background responses], whose first token comes later than that of others. A call that is
    /// dropped is cancelled there.
    ///
    /// [background responses]: https://platform.openai.com/docs/guides/background
    Resume,
    /// The call fails, and the part stays.
    Fail,
}

impl OnCut {
    /// The names in settings, with their values.
    pub const NAMES: [(&str, Self); 3] =
        [("repeat", Self::Repeat), ("resume", Self::Resume), ("fail", Self::Fail)];
}

impl ModelRequest {
    /// Returns `true` if the call may be repeated after a part of its answer was delivered.
    pub(crate) fn can_repeat_cut(&self) -> bool {
        self.options.on_cut.unwrap_or_default() != OnCut::Fail
    }
}

/// The format of an answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ResponseFormat {
    /// Any JSON object.
    JsonObject,
    /// JSON of this schema.
    JsonSchema {
        /// The name of the schema for the vendor.
        name: String,
        /// The schema.
        schema: Arc<Value>,
        /// Whether the vendor must enforce the schema.
        strict: bool,
    },
}
