//! JSON Schema in the
//! [dialect](https://ai.google.dev/api/generate-content#FIELDS.response_json_schema) of the API.
//!
//! Keywords that the dialect lacks are rewritten if possible, and otherwise left out, so that the
//! schema for the model is looser but never wrong. The receiver of the answer checks it against the
//! original schema.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// Keywords that stay as they are.
const PLAIN: [&str; 12] = [
    "$id",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "required",
    "propertyOrdering",
];

/// Returns the schema of a function's parameters; `None` for a function without any, as the API
/// requires.
pub(super) fn parameters(schema: &Value) -> Option<Value> {
    let schema = translate(schema);
    let has = |name| match &schema[name] {
        Value::Null | Value::Bool(false) => false,
        Value::Object(members) => name == "additionalProperties" || !members.is_empty(),
        _ => true,
    };
    ["properties", "additionalProperties", "$ref", "anyOf", "oneOf"].into_iter().any(has).then_some(schema)
}

/// Translates a schema; `true` and `false` allow everything.
pub(super) fn translate(schema: &Value) -> Value {
    let mut translated = Map::new();
    for (keyword, value) in schema.as_object().map(merged).iter().flat_map(|schema| schema.iter()) {
        if let Some((keyword, value)) = keyword_of(keyword, value) {
            translated.insert(keyword.to_owned(), value);
        }
    }
    unwrap_reference(&mut translated);
    Value::Object(translated)
}

/// Returns the equivalent keyword of the dialect, if there is one.
fn keyword_of<'k>(keyword: &'k str, value: &Value) -> Option<(&'k str, Value)> {
    Some(match (keyword, value) {
        ("$ref", Value::String(to)) => (keyword, to.replacen("#/definitions/", "#/$defs/", 1).into()),
        ("definitions" | "$defs", _) => ("$defs", members(value)?),
        ("properties", _) => (keyword, members(value)?),
        ("items", Value::Array(_)) => ("prefixItems", elements(value)?),
        ("items", _) => (keyword, translate(value)),
        ("prefixItems" | "anyOf" | "oneOf", _) => (keyword, elements(value)?),
        ("additionalProperties", Value::Bool(_)) => (keyword, value.clone()),
        ("additionalProperties", _) => (keyword, translate(value)),
        ("enum", Value::Array(values)) => (keyword, words(values)?),
        ("const", Value::String(_) | Value::Number(_)) => ("enum", json!([value])),
        ("const", Value::Bool(_)) => ("type", "boolean".into()),
        ("const", Value::Null) => ("type", "null".into()),
        _ if PLAIN.contains(&keyword) => (keyword, value.clone()),
        _ => return None,
    })
}

fn members(value: &Value) -> Option<Value> {
    let members = value.as_object()?.iter().map(|(name, schema)| (name.clone(), translate(schema)));
    Some(Value::Object(members.collect()))
}

fn elements(value: &Value) -> Option<Value> {
    Some(value.as_array()?.iter().map(translate).collect())
}

/// Returns the strings and numbers: an enumeration has no other values.
fn words(values: &[Value]) -> Option<Value> {
    let words: Vec<_> = values.iter().filter(|value| value.is_string() || value.is_number()).collect();
    (!words.is_empty()).then(|| json!(words))
}

/// Merges the schemas of `allOf` into a schema; where they contradict it, the schema stays.
fn merged(schema: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    let Some(all) = schema.get("allOf") else { return Cow::Borrowed(schema) };
    let mut whole = schema.clone();
    whole.shift_remove("allOf");
    for one in all.as_array().into_iter().flatten().filter_map(Value::as_object) {
        add(&mut whole, merged(one).into_owned());
    }
    Cow::Owned(whole)
}

fn add(whole: &mut Map<String, Value>, part: Map<String, Value>) {
    for (keyword, value) in part {
        match (whole.get_mut(&keyword), value) {
            (Some(Value::Object(known)), Value::Object(more)) => {
                more.into_iter().for_each(|(name, schema)| _ = known.entry(name).or_insert(schema));
            }
            (Some(Value::Array(known)), Value::Array(more)) if keyword == "required" => known.extend(more),
            (Some(_), _) => {}
            (None, value) => _ = whole.insert(keyword, value),
        }
    }
}

/// Wraps a `$ref`: beside it, the API allows only keywords with a `$`.
fn unwrap_reference(schema: &mut Map<String, Value>) {
    if schema.keys().all(|keyword| keyword.starts_with('$')) {
        return;
    }
    if let Some(reference) = schema.shift_remove("$ref") {
        schema.insert("anyOf".to_owned(), json!([{ "$ref": reference }]));
    }
}

#[cfg(test)]
mod tests;
