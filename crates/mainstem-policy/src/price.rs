//! Prices of model calls.

use std::collections::BTreeMap;

use mainstem_message::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known_models;

mod cost;

pub use cost::Cost;

/// The price of a model for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Price {
    /// For a million tokens of input without a cache.
    pub input: Cost,
    /// For a million tokens of output, reasoning included.
    pub output: Cost,
    /// For a million tokens read from a cache; the price of input if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Cost>,
    /// For a million tokens written to a cache; the price of input if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Cost>,
    /// For a million tokens written to a cache that keeps them for an hour; the price of other
    /// writes if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<Cost>,
    /// The surcharge for calls with a long prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_prompt: Option<LongPrompt>,
}

/// A surcharge on the whole of a call whose input exceeds a number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LongPrompt {
    /// The longest input without surcharge, in tokens.
    pub above: u64,
    /// The price of input and cache then, in percent of the normal price.
    pub input_percent: u64,
    /// The price of output then, in percent of the normal price.
    pub output_percent: u64,
}

/// Prices by model. The built-in ones are public list prices, which become outdated; one's own
/// override them.
///
/// A pattern is a glob for a model's whole name (`openai:gpt-4o`) or for the part after its first
/// colon (`gpt-4o`), with or without the date at its end. Of several, the one with the most literal
/// characters applies. In a file it is a table from pattern to price:
///
/// ```
/// use mainstem_message::Usage;
/// use mainstem_policy::Prices;
///
/// // In micro-dollars for a million tokens.
/// let prices: Prices = toml::from_str(r#"
///     "azure:gpt-4o*" = { input = 2_750_000, output = 11_000_000 }
///     "ollama:*" = { input = 0, output = 0 }
/// "#)?;
/// let usage = Usage::new(1_000, 500);
/// assert_eq!(prices.cost("azure:gpt-4o-2024-11-20", &usage).unwrap().to_string(), "$0.00825");
/// assert_eq!(prices.cost("openai:gpt-4o", &usage).unwrap().to_string(), "$0.0075");
/// assert_eq!(prices.cost("ollama:llama3:8b", &usage).unwrap().to_string(), "$0.00");
/// assert_eq!(prices.cost("unknown-model", &usage), None);
/// # Ok::<_, toml::de::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Prices {
    own: BTreeMap<String, Price>,
}

impl Prices {
    /// Adds a price that overrides the built-in ones, and replaces one with the same pattern.
    #[must_use]
    pub fn with_price(mut self, pattern: impl Into<String>, price: Price) -> Self {
        self.own.insert(pattern.into(), price);
        self
    }

    /// Returns the price of a model, if it is known.
    #[must_use]
    pub fn price(&self, model: &str) -> Option<Price> {
        let own = known_models::most_exact(self.own.keys(), model);
        own.and_then(|pattern| self.own.get(pattern).copied()).or_else(|| known_models::price(model))
    }

    /// Returns the cost of one call, rounded up to a micro-dollar; `None` if the model's price is
    /// unknown, which differs from free.
    ///
    /// Use it for single calls: the sum of several could be mistaken for a call with a long prompt.
    #[must_use]
    pub fn cost(&self, model: &str, usage: &Usage) -> Option<Cost> {
        Some(self.price(model)?.of(usage))
    }
}

impl Price {
    /// Creates a price for a million tokens of input and of output, with or without a cache.
    #[must_use]
    pub const fn new(input: Cost, output: Cost) -> Self {
        let (cache_read, cache_write, cache_write_1h, long_prompt) = (None, None, None, None);
        Self { input, output, cache_read, cache_write, cache_write_1h, long_prompt }
    }

    /// Sets the prices of a million tokens that are read from a cache and written to one.
    #[must_use]
    pub const fn with_cache(self, read: Cost, write: Cost) -> Self {
        Self { cache_read: Some(read), cache_write: Some(write), ..self }
    }

    /// Sets the price of a million tokens that are written to a cache for an hour.
    #[must_use]
    pub const fn with_cache_write_1h(self, write: Cost) -> Self {
        Self { cache_write_1h: Some(write), ..self }
    }

    /// Sets the surcharge for long prompts.
    #[must_use]
    pub const fn with_long_prompt(self, long_prompt: LongPrompt) -> Self {
        Self { long_prompt: Some(long_prompt), ..self }
    }

    /// Returns the cost of one call, rounded up to a micro-dollar.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> Cost {
        let (read, write) = (usage.cache_read_tokens, usage.cache_write_tokens);
        let for_an_hour = usage.cache_write_1h_tokens.min(write);
        let fresh = usage.input_tokens.saturating_sub(read).saturating_sub(write);
        let write_price = self.cache_write.unwrap_or(self.input);
        let times = |tokens: u64, price: Cost| u128::from(tokens).saturating_mul(price.micros().into());
        let input = times(fresh, self.input)
            .saturating_add(times(read, self.cache_read.unwrap_or(self.input)))
            .saturating_add(times(write - for_an_hour, write_price))
            .saturating_add(times(for_an_hour, self.cache_write_1h.unwrap_or(write_price)));
        let long = self.long_prompt.filter(|long| usage.input_tokens > long.above);
        let (input_percent, output_percent) =
            long.map_or((100, 100), |long| (long.input_percent, long.output_percent));
        let input = input.saturating_mul(input_percent.into());
        let output = times(usage.output_tokens, self.output).saturating_mul(output_percent.into());
        let micros = input.saturating_add(output).div_ceil(100 * 1_000_000);
        Cost::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

impl LongPrompt {
    /// Creates a surcharge above a number of input tokens, with the prices of input and output in
    /// percent.
    #[must_use]
    pub const fn new(above: u64, input_percent: u64, output_percent: u64) -> Self {
        Self { above, input_percent, output_percent }
    }
}

#[cfg(test)]
mod tests;
