//! JSON Schema, as far as the vendor accepts it.
//!
//! Two dialects: the [input of a tool] is any schema of an object without unions at its top; the
//! [form of an answer] is a subset, to which the vendor's own libraries translate as this module
//! does.
//!
//! [input of a tool]: https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools
//! [form of an answer]: https://platform.claude.com/docs/en/build-with-claude/structured-outputs

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// The keywords that "input_schema does not support … at the top level".
const UNIONS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// The string formats of an answer.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// Returns the schema of a tool's input: unions at its top become one object that allows what any
/// of their members allows. Arguments are checked against the original schema when the tool is
/// called.
pub(crate) fn input(schema: &Value) -> Cow<'_, Value> {
    let Some(object) = schema.as_object() else { return Cow::Owned(json!({ "type": "object" })) };
    let has_union = UNIONS.iter().any(|union| object.contains_key(*union));
    if !has_union && object.get("type").is_some_and(|kind| kind == "object") {
        return Cow::Borrowed(schema);
    }
    let mut merged = object.clone();
    merged.insert("type".to_owned(), "object".into());
    for union in UNIONS {
        if let Some(Value::Array(members)) = merged.shift_remove(union) {
            merge(&mut merged, &members, union == "allOf");
        }
    }
    Cow::Owned(merged.into())
}

/// Adds the properties of a union's members. Requires those that all members require; for `allOf`,
/// those that any requires.
fn merge(object: &mut Map<String, Value>, members: &[Value], together: bool) {
    let mut properties = object.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, property) in members.iter().filter_map(|member| member["properties"].as_object()).flatten() {
        properties.entry(name.as_str()).or_insert_with(|| property.clone());
    }
    let needs = |member: &Value, name: &Value| {
        member["required"].as_array().is_some_and(|names| names.contains(name))
    };
    let mut required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for name in members.iter().filter_map(|member| member["required"].as_array()).flatten() {
        let needed = together || members.iter().all(|member| needs(member, name));
        if needed && !required.contains(name) {
            required.push(name.clone());
        }
    }
    object.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        object.insert("required".to_owned(), required.into());
    }
}

/// Returns the schema of an answer: objects are closed, and what the vendor can't enforce becomes a
/// part of the description.
pub(crate) fn output(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    let (mut kept, mut told) = (Map::new(), Vec::new());
    let is_reference = object.contains_key("$ref");
    for (name, value) in object {
        match (name.as_str(), value) {
            ("$defs" | "definitions" | "properties", Value::Object(schemas)) => {
                let schemas = schemas.iter().map(|(name, schema)| (name.clone(), output(schema)));
                kept.insert(name.clone(), schemas.collect());
            }
            ("$ref", _) => drop(kept.insert(name.clone(), value.clone())),
            // A reference has no other keywords beside it.
            _ if is_reference => {}
            ("anyOf" | "oneOf", Value::Array(members)) => {
                kept.insert("anyOf".to_owned(), members.iter().map(output).collect());
            }
            ("allOf", Value::Array(members)) => {
                kept.insert(name.clone(), members.iter().map(output).collect());
            }
            ("items", _) => drop(kept.insert(name.clone(), output(value))),
            ("additionalProperties" | "$schema" | "$id", _) => {}
            _ if is_known(name, value) => drop(kept.insert(name.clone(), value.clone())),
            _ => told.push(format!("{name}: {value}")),
        }
    }
    close(&mut kept);
    describe(&mut kept, &told);
    kept.into()
}

/// Returns `true` if the vendor accepts this keyword with this value.
fn is_known(name: &str, value: &Value) -> bool {
    match name {
        "type" | "enum" | "const" | "required" | "title" | "description" => true,
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        "minItems" => matches!(value.as_u64(), Some(0 | 1)),
        _ => false,
    }
}

/// Closes an object: it has only its listed properties.
fn close(schema: &mut Map<String, Value>) {
    let is_object = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
        None => schema.contains_key("properties"),
    };
    if is_object {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
}

fn describe(schema: &mut Map<String, Value>, told: &[String]) {
    if told.is_empty() {
        return;
    }
    let told = format!("{{{}}}", told.join(", "));
    let described = match schema.get("description").and_then(Value::as_str) {
        Some(description) => format!("{description}\n\n{told}"),
        None => told,
    };
    schema.insert("description".to_owned(), described.into());
}

#[cfg(test)]
mod tests;
