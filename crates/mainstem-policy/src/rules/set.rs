//! One list of rules, as a file holds it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Because, Decision, Effect, Rule};
use crate::{Pattern, PatternError, plan::may_change};

/// One list of rules, and the default effect.
///
/// Of the rules that are about a call the strictest decides: deny, then ask, then allow. So an
/// `allow` matters only if the default is stricter, and the order only determines which of two
/// equal rules is the reason. `changes` makes the default stricter for tools that may change
/// something: those that are not read-only, [`PLAN_TOOLS`](crate::PLAN_TOOLS) aside.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Effect>,
    rules: Vec<Rule>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "RuleSet")]
struct Declared {
    /// The effect on calls that no rule is about.
    default: Effect,
    /// The effect on calls that no rule is about of tools that may change something, if it is
    /// stricter than `default`.
    changes: Option<Effect>,
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
        Self { default, changes: None, rules: Vec::new() }
    }

    /// Sets the effect on calls of tools that may change something, for calls that no rule is
    /// about; `None` leaves them to the default. The stricter of this and the default counts.
    #[must_use]
    pub fn with_changes(self, effect: impl Into<Option<Effect>>) -> Self {
        Self { changes: effect.into(), ..self }
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

    /// Returns the effect on calls of tools that may change something, if it is set.
    #[must_use]
    pub fn changes(&self) -> Option<Effect> {
        self.changes
    }

    /// Returns the rules, in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub(super) fn decide(&self, tool: &str, arguments: &Value, is_read_only: bool) -> Decision<'_> {
        let about = |effect| {
            let mut of_effect = self.rules.iter().filter(move |rule| rule.effect == effect);
            of_effect.find(|rule| rule.is_about(tool, arguments))
        };
        match [Effect::Deny, Effect::Ask, Effect::Allow].into_iter().find_map(about) {
            Some(rule) => Decision { effect: rule.effect, because: Because::Rule(rule) },
            None => self.otherwise(tool, is_read_only),
        }
    }

    /// Decides about a call that no rule is about.
    fn otherwise(&self, tool: &str, is_read_only: bool) -> Decision<'_> {
        let changes = self.changes.filter(|_| may_change(tool, is_read_only));
        match changes.filter(|effect| *effect > self.default) {
            Some(effect) => Decision { effect, because: Because::Changes },
            None => Decision { effect: self.default, because: Because::Default },
        }
    }

    pub(super) fn is_tool_refused(&self, tool: &str, is_read_only: bool) -> bool {
        let denies = |rule: &Rule| rule.effect == Effect::Deny && rule.pattern.is_about_all_of(tool);
        let may_pass = |rule: &Rule| rule.effect != Effect::Deny && rule.pattern.is_about_tool(tool);
        let is_denied = self.otherwise(tool, is_read_only).effect == Effect::Deny;
        self.rules.iter().any(denies) || is_denied && !self.rules.iter().any(may_pass)
    }
}

impl From<Declared> for RuleSet {
    fn from(declared: Declared) -> Self {
        let short =
            [(Effect::Allow, declared.allow), (Effect::Ask, declared.ask), (Effect::Deny, declared.deny)];
        let rules = short.into_iter().flat_map(|(effect, patterns)| {
            patterns.into_iter().map(move |pattern| Rule { pattern, effect, origin: None })
        });
        let Declared { default, changes, .. } = declared;
        Self { default, changes, rules: declared.rules.into_iter().chain(rules).collect() }
    }
}
