//! The translation of schemas, rule by rule.

use serde_json::json;

use super::*;

/// Checks the parameters of a tool with this schema.
fn check(schema: Value, expected: Value) {
    assert_eq!(parameters(&schema), expected, "{schema}");
}

/// Checks the translation of a property's schema.
fn property(schema: Value, expected: Value) {
    let of = |schema| json!({ "type": "object", "properties": { "p": schema } });
    check(of(schema), of(expected));
}

#[test]
fn parameters_are_an_object() {
    let empty = json!({ "type": "object", "properties": {} });
    for schema in [json!({}), json!(true), json!(null), json!({ "type": ["object", "null"] })] {
        check(schema, empty.clone());
    }
}

#[test]
fn what_ollama_knows_stays_as_it_is() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "city": { "type": "string", "description": "Where.", "minLength": 1 },
            "unit": { "type": ["string", "null"], "enum": ["c", "f", null], "default": null },
            "days": { "type": "array", "items": { "type": "integer" } },
            "at": { "anyOf": [{ "type": "string" }, { "type": "object", "properties": { "x": { "type": "number" } } }] },
        },
        "required": ["city"],
        "additionalProperties": false,
    });
    check(schema.clone(), schema);
}

#[test]
fn what_it_does_not_know_is_said_in_its_words() {
    property(json!(true), json!({}));
    property(json!(false), json!({}));
    property(json!({ "const": "a" }), json!({ "enum": ["a"] }));
    property(
        json!({ "oneOf": [{ "const": 1, "description": "One." }, true] }),
        json!({ "anyOf": [{ "enum": [1], "description": "One." }, {}] }),
    );
    property(json!({ "type": "array", "items": true }), json!({ "type": "array", "items": {} }));
    property(json!({ "items": [{ "const": 1 }] }), json!({ "items": [{ "enum": [1] }] }));
    property(
        json!({
            "description": "Mine.",
            "properties": { "a": { "type": "string" } },
            "required": ["a"],
            "allOf": [
                { "type": "object", "description": "Theirs.", "properties": { "a": {}, "b": { "const": 1 } }, "required": ["a", "b"] },
                { "properties": { "c": {} } },
            ],
        }),
        json!({
            "type": "object",
            "description": "Mine.",
            "properties": { "a": { "type": "string" }, "b": { "enum": [1] }, "c": {} },
            "required": ["a", "b"],
        }),
    );
}

#[test]
fn a_property_may_be_called_like_a_keyword() {
    let named =
        json!({ "const": { "type": "string" }, "$ref": { "type": "string" }, "oneOf": { "type": "string" } });
    let schema = json!({ "type": "object", "properties": named });
    check(schema.clone(), schema);
}

#[test]
fn references_are_followed() {
    let with = |property: Value, defs: &str, of: Value| json!({ "type": "object", "properties": { "p": property }, defs: of });
    let refers = |expected: Value| json!({ "type": "object", "properties": { "p": expected } });
    for defs in ["$defs", "definitions"] {
        check(
            with(
                json!({ "$ref": format!("#/{defs}/A"), "description": "Mine." }),
                defs,
                json!({
                    "A": { "type": "array", "description": "A's.", "items": { "$ref": format!("#/{defs}/B") } },
                    "B": { "const": 1 },
                }),
            ),
            refers(json!({ "description": "Mine.", "type": "array", "items": { "enum": [1] } })),
        );
    }
    // References to itself, to nothing, and to another file.
    let tree = json!({
        "type": "object",
        "description": "A tree.",
        "properties": { "children": { "type": "array", "items": { "$ref": "#/$defs/Tree" } } },
    });
    let leaf = json!({ "type": "object", "description": "A tree." });
    let branch = json!({ "type": "array", "items": leaf });
    check(
        with(json!({ "$ref": "#/$defs/Tree" }), "$defs", json!({ "Tree": tree })),
        refers(json!({ "type": "object", "description": "A tree.", "properties": { "children": branch } })),
    );
    for unknown in ["#/$defs/B", "https://h/schema.json", ""] {
        check(with(json!({ "$ref": unknown }), "$defs", json!({})), refers(json!({})));
    }
}

#[test]
fn no_schema_is_too_much() {
    // Each definition holds the next one twice: 2^100 without a bound.
    let twice = |n: usize| {
        let next = json!({ "$ref": format!("#/$defs/{}", n + 1) });
        (n.to_string(), json!({ "type": "object", "properties": { "a": next, "b": next } }))
    };
    let defs: Map<String, Value> = (0..100).map(twice).collect();
    let schema = json!({ "properties": { "p": { "$ref": "#/$defs/0" } }, "$defs": defs });
    assert!(parameters(&schema).to_string().len() < 100_000);

    let deep = (0..100).fold(json!(true), |schema, _| json!({ "items": schema }));
    let depth = parameters(&deep).to_string().matches("items").count();
    assert_eq!(depth, DEEPEST);

    check(json!({ "$ref": "#" }), json!({ "type": "object", "properties": {} }));
}
