//! Limits on the rate of model calls, as a service reports them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A limit that can hold a model call back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RateLimit {
    /// Requests per time.
    Requests,
    /// Tokens per time, of prompts and answers.
    Tokens,
    /// Tokens of prompts per time.
    InputTokens,
    /// Tokens of answers per time.
    OutputTokens,
    /// Calls at the same time.
    Calls,
    /// The service refused a call for its rate; further calls wait, and then go one by one.
    Refusal,
}

impl RateLimit {
    /// Returns the name as it is in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::Calls => "calls",
            Self::Refusal => "refusal",
        }
    }
}

/// The remaining limits of a service, from the headers of a response; `None` for those that it does
/// not report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RateLimits {
    /// Requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Allowance>,
    /// Tokens, of prompts and answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Allowance>,
    /// Tokens of prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<Allowance>,
    /// Tokens of answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<Allowance>,
}

impl RateLimits {
    /// Returns `true` if the service reported none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the reported limits, each with what it allows.
    pub fn iter(&self) -> impl Iterator<Item = (RateLimit, Allowance)> + use<> {
        [
            (RateLimit::Requests, self.requests),
            (RateLimit::Tokens, self.tokens),
            (RateLimit::InputTokens, self.input_tokens),
            (RateLimit::OutputTokens, self.output_tokens),
        ]
        .into_iter()
        .filter_map(|(limit, allowance)| Some((limit, allowance?)))
    }
}

/// How much of a limit is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Allowance {
    /// The whole limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The remaining part of it.
    pub remaining: u64,
    /// Milliseconds until the whole limit is available again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_ms: Option<u64>,
}

impl Allowance {
    /// Creates an allowance of which this much is left.
    pub fn new(remaining: u64) -> Self {
        Self { remaining, ..Self::default() }
    }

    /// Sets the whole limit.
    #[must_use]
    pub fn with_limit(mut self, limit: impl Into<Option<u64>>) -> Self {
        self.limit = limit.into();
        self
    }

    /// Sets the milliseconds until the whole limit is available again.
    #[must_use]
    pub fn with_reset_ms(mut self, reset_ms: impl Into<Option<u64>>) -> Self {
        self.reset_ms = reset_ms.into();
        self
    }
}
