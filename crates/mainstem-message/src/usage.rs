//! The usage of a model call, and why it stopped.

use std::{
    fmt,
    ops::{Add, AddAssign},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens, as the model's service counted them. A service that does not count leaves zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens read, those from a cache included.
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Of the input, what was read from a cache.
    pub cache_read_tokens: u64,
    /// Of the input, what was written to a cache.
    pub cache_write_tokens: u64,
    /// Of what was written to a cache, what is cached for an hour, at a price of its own.
    #[serde(rename = "cacheWrite1hTokens", skip_serializing_if = "is_zero")]
    pub cache_write_1h_tokens: u64,
    /// Of the output, what was reasoning.
    pub reasoning_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Creates a usage of input and output tokens; the other counters are zero.
    ///
    /// ```
    /// use mainstem_message::Usage;
    ///
    /// let mut sum = Usage::new(100, 20);
    /// sum += Usage::new(150, 30);
    /// assert_eq!((sum.input_tokens, sum.output_tokens, sum.total_tokens()), (250, 50, 300));
    /// ```
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self { input_tokens, output_tokens, ..Self::default() }
    }

    /// Returns the sum of input and output.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl Add for Usage {
    type Output = Self;

    /// Saturates: a service that reports nonsense must not panic the process.
    fn add(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cache_read_tokens: self.cache_read_tokens.saturating_add(other.cache_read_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            cache_write_1h_tokens: self.cache_write_1h_tokens.saturating_add(other.cache_write_1h_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Why a model call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model was done.
    Stop,
    /// The limit of tokens was reached.
    Length,
    /// The model waits for tools.
    ToolCalls,
    /// The service has interrupted its own tools: the model goes on when it is called again.
    Paused,
    /// The service's filter stopped it.
    ContentFilter,
    /// The model refused.
    Refusal,
    /// The call failed.
    Error,
    /// The call was cancelled.
    Cancelled,
    /// What the vendor said, where none of these fits.
    Other(String),
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::Paused => "paused",
            Self::ContentFilter => "content_filter",
            Self::Refusal => "refusal",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::Other(reason) => reason,
        })
    }
}
