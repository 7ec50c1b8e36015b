//! What a model reads when its arguments do not fit, and what is understood of them.

use serde_json::json;

use super::*;

fn fitted(schema: &Value, arguments: Value) -> Result<Value, String> {
    compile(schema).unwrap().fit(arguments, "arguments")
}

#[test]
fn each_problem_has_its_place() {
    #[track_caller]
    fn check(arguments: Value, expected: &str) {
        let schema = json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "minLength": 1 },
                "limit": { "type": "integer", "minimum": 1 },
                "filters": { "type": "array", "items": { "type": "object", "properties": { "year": { "type": "integer" } } } },
            },
            "required": ["query"],
            "additionalProperties": false,
        });
        let text = fitted(&schema, arguments).map_or_else(|error| error, |_| "fits".to_owned());
        assert_eq!(text.strip_prefix('\n').unwrap_or(&text), expected);
    }
    check(json!({ "query": "rust" }), "fits");
    check(json!({ "query": 1 }), "- at /query: must be a string, got 1");
    check(json!({}), "- arguments: \"query\" is missing");
    check(json!({ "query": "" }), "- at /query: must have at least 1 character");
    check(json!({ "query": "a", "limit": 0 }), "- at /limit: must be at least 1, got 0");
    check(
        json!({ "query": "a", "filters": [{ "year": 2026 }, { "year": "now" }] }),
        "- at /filters/1/year: must be a whole number, got \"now\"",
    );
    check(
        json!({ "query": "a", "limmit": 3 }),
        "- arguments: unknown key \"limmit\"; known: \"filters\", \"limit\", \"query\"",
    );
    check(json!([]), "- arguments: must be an object with \"query\", got []");
}

#[test]
fn what_is_allowed_is_listed() {
    #[track_caller]
    fn check(schema: Value, value: Value, expected: &str) {
        let schema = json!({ "properties": { "x": schema }, "$defs": { "Mode": { "oneOf": [{ "const": "on" }, { "const": "off" }] } } });
        let text = fitted(&schema, json!({ "x": value })).unwrap_err();
        assert_eq!(text, format!("\n- at /x: must be {expected}"));
        for word in ["oneOf", "anyOf", "enum", "const", "schema", "$ref"] {
            assert!(!text.contains(word), "{text}");
        }
    }
    let modes =
        json!({ "oneOf": [{ "const": "queue", "type": "string" }, { "const": "steer", "type": "string" }] });
    check(modes, json!("later"), "\"queue\" or \"steer\", got \"later\"");
    check(json!({ "enum": ["a", "b", "c"] }), json!("d"), "\"a\", \"b\" or \"c\", got \"d\"");
    check(json!({ "const": 5 }), json!(4), "5, got 4");
    let nullable = json!({ "anyOf": [{ "$ref": "#/$defs/Mode" }, { "type": "null" }] });
    check(nullable, json!("x"), "\"on\" or \"off\", got \"x\"");
    let objects = json!({ "anyOf": [{ "type": "object", "required": ["a"] }, { "type": "array" }] });
    check(objects, json!(true), "an object with \"a\" or a list, got true");
    check(json!({ "type": ["integer", "null"] }), json!("soon"), "a whole number, got \"soon\"");
}

#[test]
fn numbers_and_flags_that_are_sent_as_text_are_understood() {
    #[track_caller]
    fn check(schema: Value, sent: Value, expected: Value) {
        let schema = json!({ "properties": { "x": schema } });
        assert_eq!(fitted(&schema, json!({ "x": sent })).map(|mut fitted| fitted["x"].take()), Ok(expected));
    }
    check(json!({ "type": "integer" }), json!("5"), json!(5));
    check(json!({ "type": ["integer", "null"], "minimum": 0 }), json!(" 30 "), json!(30));
    check(json!({ "anyOf": [{ "type": "number" }, { "type": "null" }] }), json!("0.5"), json!(0.5));
    check(json!({ "type": "boolean" }), json!("True"), json!(true));
    check(json!({ "type": "array", "items": { "type": "integer" } }), json!(["1", 2]), json!([1, 2]));
    // A text stays a text where the schema requires one.
    check(json!({ "type": "string" }), json!("5"), json!("5"));
    check(json!({ "type": ["string", "integer"] }), json!("5"), json!("5"));
    let error =
        fitted(&json!({ "properties": { "x": { "type": "integer", "minimum": 1 } } }), json!({ "x": "0" }));
    assert_eq!(error.unwrap_err(), "\n- at /x: must be at least 1, got 0");
}
