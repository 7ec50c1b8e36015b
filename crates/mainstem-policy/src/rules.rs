//! Rules: whether a tool call runs, needs an approval, or is refused.

use std::{fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Pattern, PatternError};

mod set;

pub use set::RuleSet;

/// The effect of a rule on its calls, from lenient to strict.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a caller handles all three")]
pub enum Effect {
    /// The call runs.
    #[default]
    Allow,
    /// A person is asked first.
    Ask,
    /// The call is refused.
    Deny,
}

/// A pattern, its effect, and its origin.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rule {
    /// The calls.
    pub pattern: Pattern,
    /// The effect on them.
    pub effect: Effect,
    /// Where the rule was written, for people: a file, `--deny`, a person's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// The rules of one agent: its own, below its parent's, below the session's.
///
/// Each [`RuleSet`] decides by itself and the strictest verdict counts, so a child's rules can only
/// narrow. Cheap to clone.
///
/// ```
/// use mainstem_policy::{Effect, RuleSet, Rules};
/// use serde_json::json;
///
/// let parent = Rules::from(RuleSet::default().with_pattern(Effect::Deny, "shell")?);
/// let child = parent.narrowed_by(&RuleSet::default().with_pattern(Effect::Allow, "*")?.into());
/// let decision = child.decide("shell", &json!({"command": "ls"}), false);
/// assert_eq!(decision.effect, Effect::Deny);
/// assert_eq!(decision.to_string(), "denied by the rule \"shell\"");
/// # Ok::<_, mainstem_policy::PatternError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Rules {
    layers: Vec<Arc<RuleSet>>,
}

/// The effect on a call, and the reason. It displays as a phrase for a model or a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision<'a> {
    /// The effect.
    pub effect: Effect,
    /// What has this effect.
    pub because: Because<'a>,
}

/// What decides about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Because<'a> {
    /// No rule is about the call.
    Default,
    /// No rule is about the call, and its tool may change something.
    Changes,
    /// This rule.
    Rule(&'a Rule),
}

impl Because<'_> {
    /// Returns how much of a reason it is: what a file says goes before what holds for all calls.
    fn rank(self) -> u8 {
        match self {
            Self::Changes => 0,
            Self::Default => 1,
            Self::Rule(_) => 2,
        }
    }
}

impl Rules {
    /// Creates rules that allow every call.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the rules of a child: these and its own.
    #[must_use]
    pub fn narrowed_by(&self, child: &Self) -> Self {
        Self { layers: self.layers.iter().chain(&child.layers).cloned().collect() }
    }

    /// Decides about a call; `is_read_only` is the tool's own claim. Of several equally strict
    /// verdicts the outermost set's is the reason.
    #[must_use]
    pub fn decide(&self, tool: &str, arguments: &Value, is_read_only: bool) -> Decision<'_> {
        let none = Decision { effect: Effect::Allow, because: Because::Default };
        let decisions = self.layers.iter().map(|layer| layer.decide(tool, arguments, is_read_only));
        decisions.fold(none, Decision::stricter)
    }

    /// Returns `true` if every call of this tool is refused, so that a model need not know the
    /// tool; `is_read_only` is its own claim.
    #[must_use]
    pub fn is_tool_refused(&self, tool: &str, is_read_only: bool) -> bool {
        self.layers.iter().any(|layer| layer.is_tool_refused(tool, is_read_only))
    }

    /// Returns `true` if a rule allows this call [by name](Pattern::names), which lifts a
    /// protection. Another rule may still refuse the call.
    #[must_use]
    pub fn is_allowed_by_name(&self, tool: &str, arguments: &Value) -> bool {
        let rules = self.layers.iter().flat_map(|layer| layer.rules());
        rules.filter(|rule| rule.effect == Effect::Allow).any(|rule| rule.pattern.names(tool, arguments))
    }

    /// Returns the paths that rules open to a tool [by name](Pattern::named_path), for a tool that
    /// can't check each path that it writes.
    pub fn open_paths<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a str> {
        let rules = self.layers.iter().flat_map(|layer| layer.rules());
        let allowed = rules.filter(|rule| rule.effect == Effect::Allow);
        allowed.filter_map(move |rule| rule.pattern.named_path(tool))
    }

    /// Returns the same rules without where they were written, which names files of this machine.
    #[must_use]
    pub fn without_origins(&self) -> Self {
        let set = |layer: &Arc<RuleSet>| Arc::new(RuleSet::clone(layer).without_origins());
        Self { layers: self.layers.iter().map(set).collect() }
    }

    /// Returns how many sets and rules there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.layers.iter().map(|layer| 1 + layer.rules().len()).sum()
    }

    /// Returns the sets, outermost first.
    pub fn layers(&self) -> impl Iterator<Item = &RuleSet> {
        self.layers.iter().map(|layer| &**layer)
    }
}

impl From<RuleSet> for Rules {
    fn from(set: RuleSet) -> Self {
        Self { layers: vec![Arc::new(set)] }
    }
}

impl Rule {
    /// Creates a rule of unknown origin.
    ///
    /// # Errors
    /// If the text is not a valid pattern.
    pub fn new(effect: Effect, pattern: &str) -> Result<Self, PatternError> {
        Ok(Self::of(effect, pattern.parse()?))
    }

    /// Creates a rule of unknown origin from a pattern.
    #[must_use]
    pub fn of(effect: Effect, pattern: Pattern) -> Self {
        Self { pattern, effect, origin: None }
    }

    /// Sets where the rule was written.
    #[must_use]
    pub fn with_origin(self, origin: impl Into<String>) -> Self {
        Self { origin: Some(origin.into()), ..self }
    }

    /// Returns `true` if it is about this call: a rule that allows about all of it, others about
    /// any part.
    #[must_use]
    pub fn is_about(&self, tool: &str, arguments: &Value) -> bool {
        match self.effect {
            Effect::Allow => self.pattern.covers(tool, arguments),
            Effect::Ask | Effect::Deny => self.pattern.touches(tool, arguments),
        }
    }
}

impl Decision<'_> {
    fn stricter(self, other: Self) -> Self {
        let is_reason = other.effect == self.effect && other.because.rank() > self.because.rank();
        if other.effect > self.effect || is_reason { other } else { self }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

impl fmt::Display for Decision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.effect {
            Effect::Allow => "allowed by ",
            Effect::Ask => "to be confirmed by a person, by ",
            Effect::Deny => "denied by ",
        })?;
        match self.because {
            Because::Default => f.write_str("default: no rule is about this call"),
            Because::Changes => f.write_str("default: the tool may change something"),
            Because::Rule(Rule { pattern, origin: Some(origin), .. }) => {
                write!(f, "the rule \"{pattern}\" of {origin}")
            }
            Because::Rule(rule) => write!(f, "the rule \"{}\"", rule.pattern),
        }
    }
}

#[cfg(test)]
mod tests;
