//! One list of rules, as a file holds it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Decision, Effect, Rule};
use crate::{Pattern, PatternError};

/// One list of rules, and the default effect.
///
/// Of the rules that are about a call the strictest decides: deny, then ask, then allow. So an
/// `allow` matters only if the default is stricter, and the order only determines which of two
/// equal rules is the reason.
///
/// In a file the short form is enough; `rules` is the long one, which has order and origins, and in
/// which sets are written.
///
/// ```
/// use mainstem_policy::{Effect, RuleSet};
///
/// let set: RuleSet = toml::from_str(r#"
///     default = "ask"
///     allow = ["read_*", "shell(git *)"]
///     deny = ["write_file(path: .git/**)"]
/// "#)?;
/// assert_eq!(set.default_effect(), Effect::Ask);
/// assert_eq!(set.rules().len(), 3);
/// # Ok::<_, toml::de::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Declared")]
#[schemars(with = "Declared")]
pub struct RuleSet {
    default: Effect,
    rules: Vec<Rule>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "RuleSet")]
struct Declared {
    /// The effect on calls that no rule is about.
    default: Effect,
    /// Rules with their effects and origins.
    rules: Vec<Rule>,
    /// Patterns of calls that run.
    allow: Vec<Pattern>,
    /// Patterns of calls that a person is asked about.
    ask: Vec<Pattern>,
    /// Patterns of calls that are refused.
    deny: Vec<Pattern>,
}

impl RuleSet {
    /// Creates a set without rules, with its default effect.
    #[must_use]
    pub fn new(default: Effect) -> Self {
        Self { default, rules: Vec::new() }
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// If the text is not a valid pattern.
    pub fn with_pattern(self, effect: Effect, pattern: &str) -> Result<Self, PatternError> {
        Ok(self.with_rule(Rule::new(effect, pattern)?))
    }

    /// Adds a rule.
    #[must_use]
    pub fn with_rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Sets where the rules were written, for those without an origin.
    #[must_use]
    pub fn with_origin(mut self, origin: &str) -> Self {
        for rule in &mut self.rules {
            rule.origin.get_or_insert_with(|| origin.to_owned());
        }
        self
    }

    /// Removes where the rules were written.
    pub(super) fn without_origins(mut self) -> Self {
        self.rules.iter_mut().for_each(|rule| rule.origin = None);
        self
    }

    /// Returns the effect on calls that no rule is about.
    #[must_use]
    pub fn default_effect(&self) -> Effect {
        self.default
    }

    /// Returns the rules, in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub(super) fn decide(&self, tool: &str, arguments: &Value) -> Decision<'_> {
        let about = |effect| {
            let mut of_effect = self.rules.iter().filter(move |rule| rule.effect == effect);
            of_effect.find(|rule| rule.is_about(tool, arguments))
        };
        let because = [Effect::Deny, Effect::Ask, Effect::Allow].into_iter().find_map(about);
        Decision { effect: because.map_or(self.default, |rule| rule.effect), because }
    }

    pub(super) fn is_tool_refused(&self, tool: &str) -> bool {
        let denies = |rule: &Rule| rule.effect == Effect::Deny && rule.pattern.is_about_all_of(tool);
        let may_pass = |rule: &Rule| rule.effect != Effect::Deny && rule.pattern.is_about_tool(tool);
        self.rules.iter().any(denies) || self.default == Effect::Deny && !self.rules.iter().any(may_pass)
    }
}

impl From<Declared> for RuleSet {
    fn from(declared: Declared) -> Self {
        let short =
            [(Effect::Allow, declared.allow), (Effect::Ask, declared.ask), (Effect::Deny, declared.deny)];
        let rules = short.into_iter().flat_map(|(effect, patterns)| {
            patterns.into_iter().map(move |pattern| Rule { pattern, effect, origin: None })
        });
        Self { default: declared.default, rules: declared.rules.into_iter().chain(rules).collect() }
    }
}
