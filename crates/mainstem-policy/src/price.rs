//! What a model call costs.

use std::collections::BTreeMap;

use mainstem_message::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::glob;

mod cost;
mod table;

pub use cost::Cost;

/// What a model takes for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Price {
    /// For a million tokens of input that no cache is about.
    pub input: Cost,
    /// For a million tokens of output, reasoning included.
    pub output: Cost,
    /// For a million tokens read from a cache; the price of input, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Cost>,
    /// For a million tokens written to a cache; the price of input, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Cost>,
    /// What a call with a long prompt costs more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_prompt: Option<LongPrompt>,
}

/// A surcharge on the whole of a call whose input is longer than so many tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LongPrompt {
    /// The longest input without surcharge, in tokens.
    pub above: u64,
    /// What input and cache cost then, in percent of the price.
    pub input_percent: u64,
    /// What output costs then, in percent of the price.
    pub output_percent: u64,
}

/// Prices by model. The built-in ones are public list prices and grow old; one's own win over them.
///
/// A pattern is a glob for a model's whole name (`openai:gpt-4o`) or for what follows its first colon (`gpt-4o`), with or without the
/// date at its end. Of several, the one with the most literal characters wins. In a file it is a table from pattern to price:
///
/// ```
/// use mainstem_message::Usage;
/// use mainstem_policy::Prices;
///
/// let prices: Prices = toml::from_str(r#"
///     "azure:gpt-4o*" = { input = 2_750_000, output = 11_000_000 }   # micro-dollars for a million tokens
///     "ollama:*" = { input = 0, output = 0 }
/// "#)?;
/// let usage = Usage::new(1_000, 500);
/// assert_eq!(prices.cost("azure:gpt-4o-2024-11-20", &usage).unwrap().to_string(), "$0.00825");
/// assert_eq!(prices.cost("openai:gpt-4o", &usage).unwrap().to_string(), "$0.0075");
/// assert_eq!(prices.cost("ollama:llama3:8b", &usage).unwrap().to_string(), "$0.00");
/// assert_eq!(prices.cost("nobody-knows-me", &usage), None);
/// # Ok::<_, toml::de::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Prices {
    own: BTreeMap<String, Price>,
}

impl Prices {
    /// Adds a price that wins over the built-in ones, and replaces one with the same pattern.
    #[must_use]
    pub fn with(mut self, pattern: impl Into<String>, price: Price) -> Self {
        self.own.insert(pattern.into(), price);
        self
    }

    /// What a model takes, if that is known.
    #[must_use]
    pub fn price(&self, model: &str) -> Option<Price> {
        let names = names(model);
        let fits = |pattern: &&String| names.iter().any(|name| glob::matches(pattern, name));
        let literals = |pattern: &str| pattern.chars().filter(|c| !matches!(c, '*' | '?')).count();
        let own = self.own.keys().filter(fits).max_by_key(|pattern| literals(pattern));
        own.and_then(|pattern| self.own.get(pattern).copied())
            .or_else(|| names.iter().find_map(|name| table::price(name)))
    }

    /// What one call cost, rounded up to a micro-dollar; `None` if the model's price is unknown, which is never the same as free.
    ///
    /// For the usage of one call: a sum of several would be taken for one with a long prompt.
    #[must_use]
    pub fn cost(&self, model: &str, usage: &Usage) -> Option<Cost> {
        Some(self.price(model)?.of(usage))
    }
}

impl Price {
    /// A price for a million tokens of input and of output, whether a cache is used or not.
    #[must_use]
    pub const fn new(input: Cost, output: Cost) -> Self {
        Self { input, output, cache_read: None, cache_write: None, long_prompt: None }
    }

    /// Sets what a million tokens cost that are read from a cache and written to one.
    #[must_use]
    pub const fn with_cache(self, read: Cost, write: Cost) -> Self {
        Self { cache_read: Some(read), cache_write: Some(write), ..self }
    }

    /// Sets the surcharge for long prompts.
    #[must_use]
    pub const fn with_long_prompt(self, long_prompt: LongPrompt) -> Self {
        Self { long_prompt: Some(long_prompt), ..self }
    }

    /// What one call costs, rounded up to a micro-dollar.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> Cost {
        let (read, write) = (usage.cache_read_tokens, usage.cache_write_tokens);
        let fresh = usage.input_tokens.saturating_sub(read).saturating_sub(write);
        let times = |tokens: u64, price: Cost| u128::from(tokens).saturating_mul(price.micros().into());
        let input = times(fresh, self.input)
            .saturating_add(times(read, self.cache_read.unwrap_or(self.input)))
            .saturating_add(times(write, self.cache_write.unwrap_or(self.input)));
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
    /// A surcharge: from how many tokens of input on, and what input and output cost then, in percent.
    #[must_use]
    pub const fn new(above: u64, input_percent: u64, output_percent: u64) -> Self {
        Self { above, input_percent, output_percent }
    }
}

/// What a model may be listed under.
fn names(model: &str) -> Vec<&str> {
    let bare = model.split_once(':').map(|(_, bare)| bare);
    [Some(model), bare].into_iter().flatten().flat_map(|name| [name, undated(name)]).collect()
}

/// Without `-2024-11-20`, `-20241120`, `@20241120` or `-latest` at the end.
fn undated(name: &str) -> &str {
    let is_date = |date: &str| {
        let digits = date.bytes().filter(u8::is_ascii_digit).count();
        digits == 8
            && (date.len() == 8
                || date.len() == 10 && date.as_bytes()[4] == b'-' && date.as_bytes()[7] == b'-')
    };
    let dated = |(at, _): (usize, &str)| is_date(&name[at + 1..]).then_some(&name[..at]);
    name.strip_suffix("-latest").or_else(|| name.match_indices(['-', '@']).find_map(dated)).unwrap_or(name)
}

#[cfg(test)]
mod tests;
