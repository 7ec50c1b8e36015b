//! The rules by which the same calls need an approval as in the record.

use std::collections::BTreeSet;

use mainstem::policy::{Effect, Pattern, RuleSet, Rules};
use serde_json::Value;

/// What a request for an approval has in place of a pattern if no rule is about the call.
const DEFAULT: &str = "default";

/// A call that reached its tool, or a person.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    /// The number of its event.
    pub(super) seq: u64,
    pub(super) tool: String,
    pub(super) arguments: Value,
    /// Whether a person was asked.
    pub(super) was_asked: bool,
}

/// Returns rules that ask about these calls and no others.
///
/// `asking` are the patterns of the rules that asked, and `changing` the tools whose calls were
/// asked about because they may change something.
///
/// # Errors
/// The call that they would be wrong about: rules may differ between agents, and a person may have
/// allowed a call for the time after.
pub(super) fn rules(
    calls: &[Judged],
    asking: &BTreeSet<String>,
    changing: &BTreeSet<String>,
) -> Result<RuleSet, u64> {
    let ask_if = |asks| if asks { Effect::Ask } else { Effect::Allow };
    let rules = RuleSet::new(ask_if(asking.contains(DEFAULT))).with_changes(ask_if(!changing.is_empty()));
    let patterns_that_ask = asking.iter().filter(|pattern| *pattern != DEFAULT);
    let rules = patterns_that_ask
        .fold(rules, |rules, pattern| rules.clone().with_pattern(Effect::Ask, pattern).unwrap_or(rules));
    let asks = |rules: &RuleSet, call: &Judged| {
        let is_read_only = !changing.contains(&call.tool);
        let rules = Rules::from(rules.clone());
        rules.decide(&call.tool, &call.arguments, is_read_only).effect == Effect::Ask
    };
    let rules = calls.iter().fold(rules, |rules, call| {
        if call.was_asked || !asks(&rules, call) {
            return rules;
        }
        let allowing = patterns(call).find(|pattern| {
            let covers = |other: &Judged| pattern.covers(&other.tool, &other.arguments);
            covers(call) && !calls.iter().any(|other| other.was_asked && covers(other))
        });
        let allowed =
            allowing.and_then(|allow| rules.clone().with_pattern(Effect::Allow, &allow.to_string()).ok());
        allowed.unwrap_or(rules)
    });
    match calls.iter().find(|call| asks(&rules, call) != call.was_asked) {
        Some(call) => Err(call.seq),
        None => Ok(rules),
    }
}

/// Returns patterns that may be about this call alone.
fn patterns(call: &Judged) -> impl Iterator<Item = Pattern> + '_ {
    let fields = call.arguments.as_object().into_iter().flatten();
    let texts = fields.filter_map(|(name, value)| match value {
        Value::String(text) => Some(format!("{}({name}: {text})", call.tool)),
        Value::Number(number) => Some(format!("{}({name}: {number})", call.tool)),
        _ => None,
    });
    let whole = std::iter::once(format!("{}({})", call.tool, call.arguments));
    texts.chain(whole).filter_map(|text| text.parse().ok())
}
