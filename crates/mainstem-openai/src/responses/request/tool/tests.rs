//! Which schemas are strict.

use serde_json::json;

use super::*;

fn check(schema: Value, expected: bool) {
    assert_eq!(is_strict(&schema), expected, "{schema}");
}

/// Returns an object whose one property has this schema.
fn with(property: Value) -> Value {
    let properties = json!({ "a": property });
    json!({ "type": "object", "properties": properties, "required": ["a"], "additionalProperties": false })
}

#[test]
fn only_what_is_documented_is_strict() {
    check(with(json!({ "type": "string", "description": "d", "title": "A" })), true);
    check(with(json!({ "type": ["integer", "null"], "minimum": 0 })), true);
    check(with(json!({ "type": "string", "format": "date-time" })), true);
    check(with(json!({ "type": "array", "items": with(json!({ "enum": ["x"] })), "minItems": 1 })), true);
    check(with(json!({ "anyOf": [{ "type": "null" }, with(json!({ "const": 1 }))] })), true);
    let mut defined = with(json!({ "$ref": "#/$defs/b" }));
    defined["$defs"] = json!({ "b": with(json!({ "type": "string" })) });
    defined["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    check(defined.clone(), true);
    check(json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false }), true);
    // A property may have the name of a keyword.
    let named = json!({ "default": { "type": "string" }, "oneOf": { "type": "string" } });
    let required = json!(["default", "oneOf"]);
    check(
        json!({ "type": "object", "properties": named, "required": required, "additionalProperties": false }),
        true,
    );

    check(with(json!({ "type": "integer", "format": "uint32" })), false);
    check(with(json!({ "type": "string", "default": "x" })), false);
    check(with(json!({ "type": "string", "minLength": 1 })), false);
    check(with(json!({ "oneOf": [{ "type": "null" }] })), false);
    check(with(json!({ "allOf": [{ "type": "null" }] })), false);
    check(with(json!({ "$ref": "#/$defs/b", "description": "d" })), false);
    check(with(json!({ "type": "array", "prefixItems": [] })), false);
    check(with(json!({ "type": "object" })), false);
    check(with(json!(true)), false);
    defined["$defs"]["b"]["required"] = json!([]);
    check(defined, false);
    check(json!({ "type": "object" }), false);
    check(json!({ "type": "object", "properties": {}, "additionalProperties": false }), false);
    check(json!({}), false);
    check(json!({ "anyOf": [with(json!({ "type": "string" }))] }), false);
}
