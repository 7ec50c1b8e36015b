//! The one place that knows the YAML library: text to positioned nodes, within a budget.

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::{
    DuplicateKeyPolicy, Error, Localizer, Location, NonFiniteFloatPolicy, Options, Spanned,
    UserMessageFormatter,
};

use crate::{
    Position, SpecError,
    node::{Entry, Node, Value},
};

/// The bounds of front matter; more is an attack if it has aliases.
pub(crate) const MAX_BYTES: usize = 64 << 10;

/// Reads one document. Every position is one in `yaml`.
pub(crate) fn read(yaml: &str) -> Result<Node, SpecError> {
    if yaml.len() > MAX_BYTES {
        let message = format!("the front matter has {} bytes, at most {MAX_BYTES} are read", yaml.len());
        return Err(SpecError::error(message).at(Position::START));
    }
    let root: Spanned<Value> =
        serde_saphyr::from_str_with_options(yaml, options()).map_err(|error| explain(yaml, &error))?;
    Ok(root.into())
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 32, flow_nesting_limit: 32, max_nodes: 10_000, max_events: 40_000, max_aliases: 100,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 1_000 },
        // Our own check names the place of the first one, and continues.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        // The YAML 1.2 reading: `no`, `0755` and `1_000` are text.
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    }
}

fn explain(yaml: &str, error: &Error) -> SpecError {
    let mut message = match error.without_snippet() {
        error if is_over_budget(error) => {
            "the front matter is too deep or too large, or its aliases multiply".to_owned()
        }
        error => error.render_with_formatter(&UserMessageFormatter.with_localizer(&Placeless)),
    };
    let Some(location) = error.location() else {
        return SpecError::error(message);
    };
    let at = position(location);
    if let Some(remedy) = remedy(yaml, at.line) {
        message = format!("{remedy}: {message}");
    }
    SpecError::error(message).at(at)
}

fn is_over_budget(error: &Error) -> bool {
    match error {
        Error::AliasError { error, .. } => is_over_budget(error),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => true,
        _ => false,
    }
}

/// Returns a correction, if the line suggests one.
fn remedy(yaml: &str, line: u32) -> Option<String> {
    if let Some(key) = list_below_value(yaml, line) {
        return Some(format!("write each value of {key:?} as an item of the list below it"));
    }
    if let Some(key) = unquoted(yaml, line) {
        return Some(format!("put the value of {key:?} in quotes"));
    }
    let text = yaml.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
    let below = yaml.lines().nth(usize::try_from(line).ok()?).unwrap_or_default();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let tab = |line: &str| line[..indent(line)].contains('\t');
    if tab(text) || tab(below) {
        return Some("indent with spaces, not with tabs".to_owned());
    }
    let line = usize::try_from(line).ok()?;
    let mut lines = yaml.lines().enumerate().take(line);
    lines.find_map(|(n, text)| Some(format!("close the {} of line {}", open(text)?, n + 1)))
}

/// Returns the key whose value begins on its own line and goes on as a list, if the error is at
/// one of these lines.
fn list_below_value(yaml: &str, line: u32) -> Option<&str> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_item = |line: &str| line.trim_start().starts_with("- ");
    let at = usize::try_from(line).ok()?.checked_sub(1)?;
    let lines: Vec<_> = yaml.lines().take(at + 2).collect();
    let above = lines.get(..=at)?.iter().rposition(|line| !is_item(line))?;
    let (head, item) = (lines[above], lines.get(above + 1)?);
    let (key, value) = head.split_once(": ")?;
    let is_plain =
        !value.trim().is_empty() && !value.trim_start().starts_with(['|', '>', '[', '{', '"', '\'']);
    let is_below = indent(item) > indent(head) || indent(head) == 0;
    (is_item(item) && is_plain && is_below).then_some(key.trim())
}

/// Returns the bracket or quote that begins a value and is not closed on its line.
fn open(line: &str) -> Option<&'static str> {
    let value = line.split_once(": ")?.1.trim();
    let first = value.chars().next()?;
    let (close, name) = match first {
        '[' => (']', "bracket"),
        '{' => ('}', "brace"),
        '"' | '\'' => (first, "quote"),
        _ => return None,
    };
    (!value[first.len_utf8()..].contains(close)).then_some(name)
}

/// Returns the key on this line, if its value is plain text with a character that has a meaning in
/// YAML.
fn unquoted(yaml: &str, line: u32) -> Option<&str> {
    let line = yaml.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
    let (key, value) = line.split_once(": ")?;
    let (key, value) = (key.trim(), value.trim());
    let word = key.len() <= 64 && key.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    let special = value.starts_with(['@', '`', '%', '*']) || value.contains(": ") || value.ends_with(':');
    (word && special && !value.starts_with(['"', '\'', '[', '{', '|', '>'])).then_some(key)
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("the number is not finite"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Value>>()? {
            nodes.push(item.into());
        }
        Ok(Value::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = items.next_entry::<Spanned<String>, Spanned<Value>>()? {
            entries.push(Entry { at: position(key.referenced), key: key.value, node: value.into() });
        }
        Ok(Value::Map(entries))
    }
}

impl From<Spanned<Value>> for Node {
    fn from(spanned: Spanned<Value>) -> Self {
        Self { at: position(spanned.referenced), value: spanned.value }
    }
}

fn position(location: Location) -> Position {
    Position::new(location.line(), location.column())
}

/// Leaves places out of messages: they are in front of them, and in their own field.
struct Placeless;

impl Localizer for Placeless {
    fn attach_location<'a>(&self, base: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        base
    }

    fn alias_defined_at(&self, _: Location) -> String {
        String::new()
    }

    fn alias_used_at(&self, _: Location) -> String {
        String::new()
    }
}
