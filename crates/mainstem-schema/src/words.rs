//! Describes what is wrong with a value in terms of the value (what is allowed there), not of the
//! schema.

use std::{
    collections::HashSet,
    fmt::Write as _,
    io::{self, Write},
};

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};
use serde_json::Value;

/// The most characters of a wrong value that are shown, and the most alternatives.
const SHOWN: usize = 60;
const MOST: usize = 30;

/// One problem as a phrase.
pub(crate) fn of(schema: &Value, error: &ValidationError<'_>) -> String {
    let got = || shown(error.instance());
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unknown_keys(unexpected, &known_keys(schema, error))
        }
        Kind::Required { property } => format!("{property} is missing"),
        Kind::Type { .. }
        | Kind::Enum { .. }
        | Kind::Constant { .. }
        | Kind::AnyOf { .. }
        | Kind::OneOfNotValid { .. } => {
            let allowed = allowed(schema, error);
            match allowed.is_empty() {
                true => format!("must have another form, got {}", got()),
                false => format!("must be {}, got {}", either(&allowed), got()),
            }
        }
        Kind::OneOfMultipleValid { .. } => {
            "fits more than one of the allowed forms; leave out a part".to_owned()
        }
        Kind::Minimum { limit } => format!("must be at least {limit}, got {}", got()),
        Kind::Maximum { limit } => format!("must be at most {limit}, got {}", got()),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}, got {}", got()),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}, got {}", got()),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}, got {}", got()),
        Kind::MinItems { limit } => format!("must have at least {}", counted(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", counted(*limit, "item")),
        Kind::AdditionalItems { limit } => format!("must have at most {}", counted(*limit as u64, "item")),
        Kind::MinLength { limit } => format!("must have at least {}", counted(*limit, "character")),
        Kind::MaxLength { limit } => format!("must have at most {}", counted(*limit, "character")),
        Kind::MinProperties { limit } => format!("must have at least {}", counted(*limit, "key")),
        Kind::MaxProperties { limit } => format!("must have at most {}", counted(*limit, "key")),
        Kind::UniqueItems => "has an item twice".to_owned(),
        Kind::Contains => "lacks an item that is required".to_owned(),
        Kind::UnevaluatedItems { .. } => "has items that are not allowed".to_owned(),
        Kind::Pattern { pattern } => format!("must match the regular expression {pattern:?}, got {}", got()),
        Kind::Format { format } => format!("must be written as {format}, got {}", got()),
        Kind::PropertyNames { error } => {
            format!("has a key that is not allowed: {}", shown(error.instance()))
        }
        Kind::FalseSchema | Kind::Not { .. } => format!("is not allowed here: {}", got()),
        _ => format!("can't be used: {}", got()),
    }
}

/// Returns the types that the schema asks for in the place of an error, by their names in schemas.
pub(crate) fn types<'a>(schema: &'a Value, error: &ValidationError<'_>) -> Vec<&'a str> {
    let mut types = Vec::new();
    if let Some(asked) = parent(schema, error) {
        collect_types(schema, asked, 0, &mut types);
    }
    types
}

fn collect_types<'a>(schema: &'a Value, asked: &'a Value, depth: usize, types: &mut Vec<&'a str>) {
    each_form(schema, asked, depth, &mut |form| match form.get("type") {
        Some(Value::String(one)) => types.push(one),
        Some(Value::Array(several)) => types.extend(several.iter().filter_map(Value::as_str)),
        _ => {}
    });
}

/// Returns what is allowed in the place of an error, each in words.
fn allowed(schema: &Value, error: &ValidationError<'_>) -> Vec<String> {
    let mut allowed = Vec::new();
    let Some(asked) = parent(schema, error) else { return allowed };
    each_form(schema, asked, 0, &mut |form| {
        if let Some(value) = form.get("const") {
            allowed.push(value.to_string());
        } else if let Some(values) = form.get("enum").and_then(Value::as_array) {
            allowed.extend(values.iter().map(Value::to_string));
        } else {
            match form.get("type") {
                Some(Value::String(one)) => allowed.push(named(one, form)),
                Some(Value::Array(several)) => {
                    allowed.extend(several.iter().filter_map(Value::as_str).map(|one| named(one, form)));
                }
                _ => {}
            }
        }
    });
    let mut seen = HashSet::new();
    allowed.retain(|one| seen.insert(one.clone()));
    // `null` is not a useful alternative in a message.
    if allowed.len() > 1 {
        allowed.retain(|one| one != "null");
    }
    allowed
}

/// Calls `f` with each form that a schema leads to: itself, or the alternatives in it.
fn each_form<'a>(whole: &'a Value, schema: &'a Value, depth: usize, f: &mut impl FnMut(&'a Value)) {
    // A schema may lead to itself.
    if depth > 8 {
        return;
    }
    let pointed =
        schema.get("$ref").and_then(Value::as_str).and_then(|to| whole.pointer(to.strip_prefix('#')?));
    let several = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema.get(key)?.as_array());
    let forms: Vec<_> = several.flatten().chain(pointed).collect();
    if forms.is_empty() {
        return f(schema);
    }
    forms.into_iter().for_each(|form| each_form(whole, form, depth + 1, f));
}

/// Returns the schema to which the violated rule belongs.
fn parent<'a>(schema: &'a Value, error: &ValidationError<'_>) -> Option<&'a Value> {
    let path = error.schema_path().to_string();
    schema.pointer(path.rsplit_once('/').map_or("", |(parent, _)| parent))
}

fn known_keys(schema: &Value, error: &ValidationError<'_>) -> Vec<String> {
    let properties = parent(schema, error).and_then(|parent| parent.get("properties")?.as_object());
    let mut keys: Vec<_> = properties.into_iter().flatten().map(|(key, _)| key.clone()).collect();
    keys.sort_unstable();
    keys
}

fn unknown_keys(unexpected: &[String], known: &[String]) -> String {
    let quoted = |keys: &[String]| keys.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>().join(", ");
    let noun = if unexpected.len() == 1 { "unknown key" } else { "unknown keys" };
    let mut text = format!("{noun} {}", quoted(unexpected));
    if !known.is_empty() {
        // Writing to a string does not fail.
        let _ = write!(text, "; known: {}", quoted(known));
    }
    text
}

fn named(kind: &str, form: &Value) -> String {
    match kind {
        "integer" => "a whole number".to_owned(),
        "number" => "a number".to_owned(),
        "string" => "a string".to_owned(),
        "boolean" => "true or false".to_owned(),
        "array" => "a list".to_owned(),
        "object" => match form.get("required").and_then(Value::as_array).filter(|keys| !keys.is_empty()) {
            Some(keys) => {
                let keys: Vec<_> = keys.iter().map(Value::to_string).collect();
                format!("an object with {}", keys.join(", "))
            }
            None => "an object".to_owned(),
        },
        other => other.to_owned(),
    }
}

fn either(allowed: &[String]) -> String {
    match allowed {
        [one] => one.clone(),
        [most @ .., last] if allowed.len() <= MOST => format!("{} or {last}", most.join(", ")),
        _ => format!("{} or one of {} more", allowed[..MOST].join(", "), allowed.len() - MOST),
    }
}

/// Returns the beginning of a value as JSON; the rest is not written.
fn shown(value: &Value) -> String {
    let mut start = Start(Vec::new());
    // It stops when there is enough.
    let _ = serde_json::to_writer(&mut start, value);
    let text = String::from_utf8_lossy(&start.0);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// Takes no more than is shown.
struct Start(Vec<u8>);

impl Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Four bytes are the longest character; one more says that there is more.
        let room = 4 * (SHOWN + 1) - self.0.len();
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = &bytes[..bytes.len().min(room)];
        self.0.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
