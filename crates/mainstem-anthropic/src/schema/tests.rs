//! Accepted keywords, and the translation of the others.

use super::*;

#[test]
fn the_input_of_a_tool_is_an_object_without_unions_at_its_top() {
    let check = |schema: Value, expected: Value| assert_eq!(*input(&schema), expected, "{schema}");
    let same = |schema: Value| {
        assert!(matches!(input(&schema), Cow::Borrowed(_)), "{schema}");
        check(schema.clone(), schema);
    };
    same(json!({ "type": "object" }));
    same(
        json!({ "type": "object", "properties": { "a": { "anyOf": [{ "type": "string", "pattern": "^a" }, { "type": "null" }] } },
                 "$defs": { "b": { "minimum": 1 } }, "additionalProperties": false }),
    );
    check(json!({}), json!({ "type": "object" }));
    check(json!(true), json!({ "type": "object" }));
    check(json!({ "properties": { "a": {} } }), json!({ "properties": { "a": {} }, "type": "object" }));
    check(
        json!({ "type": "object", "properties": { "a": {}, "b": {} }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
        json!({ "type": "object", "properties": { "a": {}, "b": {} } }),
    );
    check(
        json!({ "oneOf": [
            { "type": "object", "properties": { "kind": { "const": "x" }, "x": {} }, "required": ["kind", "x"] },
            { "type": "object", "properties": { "kind": { "const": "y" }, "y": {} }, "required": ["y", "kind"] },
        ] }),
        json!({ "type": "object", "properties": { "kind": { "const": "x" }, "x": {}, "y": {} }, "required": ["kind"] }),
    );
    check(
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"], "allOf": [
            { "properties": { "a": {}, "b": {} }, "required": ["b"] }, { "required": ["a"] }, true,
        ] }),
        json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": {} }, "required": ["a", "b"] }),
    );
}

#[test]
fn the_form_of_an_answer_is_closed_and_the_rest_is_told() {
    let check = |schema: Value, expected: Value| assert_eq!(output(&schema), expected, "{schema}");
    // The example of `transform_schema` in anthropic-sdk-python, `lib/_parse/_transform.py`.
    check(
        json!({ "type": "integer", "minimum": 1, "maximum": 10, "description": "A number" }),
        json!({ "type": "integer", "description": "A number\n\n{minimum: 1, maximum: 10}" }),
    );
    check(
        json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "T", "type": "object",
                "properties": { "a": { "type": "object", "additionalProperties": true } }, "required": ["a"] }),
        json!({ "title": "T", "type": "object", "properties": { "a": { "type": "object", "additionalProperties": false } },
                "required": ["a"], "additionalProperties": false }),
    );
    check(
        json!({ "oneOf": [{ "type": "string", "format": "date" }, { "type": "string", "format": "iri" }] }),
        json!({ "anyOf": [{ "type": "string", "format": "date" }, { "type": "string", "description": "{format: \"iri\"}" }] }),
    );
    check(
        json!({ "type": "array", "items": { "properties": {} }, "minItems": 1, "maxItems": 3 }),
        json!({ "type": "array", "items": { "properties": {}, "additionalProperties": false }, "minItems": 1,
                "description": "{maxItems: 3}" }),
    );
    check(
        json!({ "type": "array", "minItems": 2 }),
        json!({ "type": "array", "description": "{minItems: 2}" }),
    );
    check(
        json!({ "$ref": "#/$defs/T", "description": "x", "$defs": { "T": { "type": ["object", "null"] } } }),
        json!({ "$ref": "#/$defs/T", "$defs": { "T": { "type": ["object", "null"], "additionalProperties": false } } }),
    );
    check(
        json!({ "allOf": [{ "type": "object" }], "enum": [1], "const": 1 }),
        json!({ "allOf": [{ "type": "object", "additionalProperties": false }], "enum": [1], "const": 1 }),
    );
    check(json!(true), json!(true));
    // Names are not keywords.
    check(
        json!({ "type": "object", "properties": { "minimum": { "type": "string" } } }),
        json!({ "type": "object", "properties": { "minimum": { "type": "string" } }, "additionalProperties": false }),
    );
}
