//! A tool, and whether the vendor enforces its schema.

use mainstem_message::ToolSpec;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::request::fits_strict;

#[derive(Debug, Serialize)]
pub(super) struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// Always sent: without it, the vendor makes the schema strict by itself, and optional
    /// arguments required.
    strict: bool,
}

/// A tool of a request.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Either<'a> {
    Ours(Tool<'a>),
    OfVendor(&'a Value),
}

/// Returns the vendor's [own tools](https://platform.openai.com/docs/guides/tools), by our names.
pub(super) fn of_vendor() -> [(&'static str, Value); 2] {
    let code = json!({ "type": "code_interpreter", "container": { "type": "auto" } });
    [("web_search", json!({ "type": "web_search" })), ("code_execution", code)]
}

impl<'a> From<&'a ToolSpec> for Tool<'a> {
    fn from(ToolSpec { name, description, parameters, .. }: &'a ToolSpec) -> Self {
        Tool { kind: "function", name, description, parameters, strict: is_strict(parameters) }
    }
}

/// Returns `true` if strict mode accepts the schema. A schema that it refuses fails the whole
/// request, so only [documented] keywords pass.
///
/// [documented]: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
fn is_strict(schema: &Value) -> bool {
    let is_object = schema.get("type").is_some_and(|form| form == "object");
    let lists_all = schema.get("required").is_some() && schema.get("properties").is_some();
    is_object && lists_all && fits_strict(schema) && is_documented(schema)
}

/// Returns `true` if the schema has only documented keywords.
fn is_documented(schema: &Value) -> bool {
    let is_map = |value: &Value| value.as_object().is_some_and(|map| map.values().all(is_documented));
    let is_keyword = |(keyword, value): (&String, &Value)| match keyword.as_str() {
        "properties" | "$defs" | "definitions" => is_map(value),
        "items" => is_documented(value),
        "anyOf" => value.as_array().is_some_and(|schemas| schemas.iter().all(is_documented)),
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        keyword => KEYWORDS.contains(&keyword),
    };
    let is_lone_reference = |schema: &Map<String, Value>| !schema.contains_key("$ref") || schema.len() == 1;
    schema.as_object().is_some_and(|schema| is_lone_reference(schema) && schema.iter().all(is_keyword))
}

const KEYWORDS: [&str; 17] = [
    "$schema",
    "$ref",
    "additionalProperties",
    "const",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maximum",
    "maxItems",
    "minimum",
    "minItems",
    "multipleOf",
    "pattern",
    "required",
    "title",
    "type",
];

const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

#[cfg(test)]
mod tests;
