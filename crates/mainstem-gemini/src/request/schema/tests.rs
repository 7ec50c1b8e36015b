//! The translation of each keyword.

use super::*;

fn check(schema: Value, expected: Value) {
    assert_eq!(translate(&schema), expected, "{schema}");
}

#[test]
fn what_the_dialect_knows_stays() {
    let known = json!({
        "$id": "i", "$anchor": "a", "$defs": { "D": { "type": "null" } },
        "type": ["object", "null"], "title": "t", "description": "d", "format": "date",
        "properties": { "pattern": { "type": "string", "enum": ["a", 1] }, "list": { "items": { "$ref": "#/$defs/D" } } },
        "required": ["pattern"], "additionalProperties": false, "propertyOrdering": ["list", "pattern"],
        "prefixItems": [{ "type": "integer", "minimum": 1, "maximum": 2 }], "minItems": 1, "maxItems": 2,
        "anyOf": [{ "type": "number" }], "oneOf": [{ "type": "boolean" }],
    });
    check(known.clone(), known);
}

#[test]
fn what_it_does_not_know_is_left_out() {
    check(
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "$comment": "c", "type": "string",
            "default": "a", "examples": ["a"], "pattern": "^a$", "minLength": 1, "maxLength": 2, "not": {},
            "deprecated": true, "readOnly": true, "if": {}, "then": {}, "else": {},
        }),
        json!({ "type": "string" }),
    );
    check(
        json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 9, "multipleOf": 2 }),
        json!({ "type": "number" }),
    );
    check(
        json!({ "type": "object", "patternProperties": {}, "minProperties": 1, "dependentRequired": {} }),
        json!({ "type": "object" }),
    );
    check(json!({ "type": "array", "uniqueItems": true, "contains": {} }), json!({ "type": "array" }));
    // Properties may have any name, and are translated.
    check(
        json!({ "properties": { "default": { "default": 1, "type": "integer" }, "any": true, "none": false } }),
        json!({ "properties": { "default": { "type": "integer" }, "any": {}, "none": {} } }),
    );
    check(
        json!({ "additionalProperties": { "pattern": "x", "type": "string" } }),
        json!({ "additionalProperties": { "type": "string" } }),
    );
    check(json!({ "items": true }), json!({ "items": {} }));
    let nonsense = json!({ "properties": 1, "anyOf": 2, "enum": 3, "$ref": 4, "allOf": 5 });
    for schema in [json!(true), json!(null), json!("x"), json!([1]), nonsense] {
        check(schema, json!({}));
    }
}

#[test]
fn what_can_be_said_otherwise_is() {
    check(json!({ "const": "a" }), json!({ "enum": ["a"] }));
    check(json!({ "const": 1 }), json!({ "enum": [1] }));
    check(json!({ "const": true }), json!({ "type": "boolean" }));
    check(json!({ "const": null }), json!({ "type": "null" }));
    check(json!({ "const": {} }), json!({}));
    check(json!({ "enum": ["a", null, 1.5, true] }), json!({ "enum": ["a", 1.5] }));
    check(json!({ "enum": [true] }), json!({}));
    check(json!({ "items": [{ "type": "string" }] }), json!({ "prefixItems": [{ "type": "string" }] }));
    check(
        json!({ "definitions": { "D": { "const": 1 } }, "properties": { "d": { "$ref": "#/definitions/D" } } }),
        json!({ "$defs": { "D": { "enum": [1] } }, "properties": { "d": { "$ref": "#/$defs/D" } } }),
    );
}

#[test]
fn a_reference_stands_alone() {
    check(json!({ "$ref": "#/$defs/D", "$anchor": "a" }), json!({ "$ref": "#/$defs/D", "$anchor": "a" }));
    check(json!({ "$ref": "#/$defs/D", "default": 1 }), json!({ "$ref": "#/$defs/D" }));
    check(
        json!({ "$ref": "#/$defs/D", "description": "d" }),
        json!({ "description": "d", "anyOf": [{ "$ref": "#/$defs/D" }] }),
    );
    // As older versions of schemars write it.
    check(
        json!({ "description": "d", "allOf": [{ "$ref": "#/definitions/D" }] }),
        json!({ "description": "d", "anyOf": [{ "$ref": "#/$defs/D" }] }),
    );
}

#[test]
fn all_of_it_is_one_schema() {
    check(
        json!({
            "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"],
            "allOf": [
                { "type": "array", "properties": { "a": {}, "b": { "type": "null" } }, "required": ["b"] },
                { "allOf": [{ "description": "d" }] },
                true,
            ],
        }),
        json!({
            "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "null" } },
            "required": ["a", "b"], "description": "d",
        }),
    );
}

#[test]
fn a_function_without_parameters_has_none() {
    let check = |schema: Value, has_any: bool| assert_eq!(parameters(&schema).is_some(), has_any, "{schema}");
    check(json!({}), false);
    check(json!({ "type": "object" }), false);
    check(
        json!({ "type": "object", "properties": {}, "additionalProperties": false, "required": [] }),
        false,
    );
    check(json!({ "properties": { "a": {} } }), true);
    check(json!({ "type": "object", "additionalProperties": true }), true);
    check(json!({ "type": "object", "additionalProperties": {} }), true);
    check(json!({ "$ref": "#/$defs/D", "$defs": { "D": {} } }), true);
    check(json!({ "oneOf": [{}] }), true);
}
