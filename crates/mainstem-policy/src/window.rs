//! Context windows of models.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known_models;

/// Context windows by model: the longest prompt, in tokens. Windows of one's own override those of
/// the built-in [list](crate::known_models).
///
/// A pattern is a glob as for [`Prices`](crate::Prices); of several, the one with the most literal
/// characters applies. In a file it is a table from pattern to tokens:
///
/// ```
/// use mainstem_policy::ContextWindows;
///
/// let windows: ContextWindows = toml::from_str(r#""ollama:*" = 32_768"#)?;
/// assert_eq!(windows.window("ollama:llama3:8b"), Some(32_768));
/// assert_eq!(windows.window("openai:gpt-4o-2024-11-20"), Some(128_000));
/// assert_eq!(windows.window("unknown-model"), None);
/// # Ok::<_, toml::de::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ContextWindows {
    own: BTreeMap<String, u64>,
}

impl ContextWindows {
    /// Adds a window that overrides the built-in ones, and replaces one with the same pattern.
    #[must_use]
    pub fn with_window(mut self, pattern: impl Into<String>, tokens: u64) -> Self {
        self.own.insert(pattern.into(), tokens);
        self
    }

    /// Returns the window of a model in tokens, if it is known.
    #[must_use]
    pub fn window(&self, model: &str) -> Option<u64> {
        let own = known_models::most_exact(self.own.keys(), model);
        own.and_then(|pattern| self.own.get(pattern).copied()).or_else(|| known_models::window(model))
    }
}

#[cfg(test)]
mod tests {
    use super::ContextWindows;

    #[test]
    fn windows_of_ones_own_override_the_list() {
        let windows = ContextWindows::default()
            .with_window("ollama:*", 8_192)
            .with_window("ollama:qwen3*", 40_960)
            .with_window("gpt-4o", 64_000);
        let check =
            |model: &str, expected: Option<u64>| assert_eq!(windows.window(model), expected, "{model}");
        check("ollama:llama3:8b", Some(8_192));
        check("ollama:qwen3:4b", Some(40_960));
        check("gpt-4o", Some(64_000));
        check("openai:gpt-4o-2024-11-20", Some(64_000));
        check("gpt-4o-mini", Some(128_000));
        check("anthropic:claude-haiku-4-5-20251001", Some(200_000));
        check("claude-opus-4-6", Some(1_000_000));
        check("gemini:gemini-2.5-flash", Some(1_048_576));
        check("llama3", None);
        check("", None);
    }
}
