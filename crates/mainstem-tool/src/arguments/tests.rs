//! What a model reads when its arguments do not fit.

use serde_json::json;

use super::*;

fn check_text(arguments: &Value, expected: &str) {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string" },
            "filters": { "type": "array", "items": { "type": "object", "properties": { "year": { "type": "integer" } } } },
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    let schema = crate::schema::Schema::compile(&schema).unwrap();
    let text =
        check("search", &schema, arguments).map_or_else(|error| error.to_string(), |()| "fits".to_owned());
    assert_eq!(text, expected);
}

#[test]
fn each_problem_has_its_place() {
    let head = "the arguments of search don't fit its schema:";
    check_text(&json!({ "query": "rust" }), "fits");
    check_text(&json!({ "query": 1 }), &format!("{head}\n- at /query: 1 is not of type \"string\""));
    check_text(&json!({}), &format!("{head}\n- arguments: \"query\" is a required property"));
    check_text(
        &json!({ "query": "a", "filters": [{ "year": 2026 }, { "year": "now" }] }),
        &format!("{head}\n- at /filters/1/year: \"now\" is not of type \"integer\""),
    );
    check_text(
        &json!({ "query": "a", "limit": 3 }),
        &format!("{head}\n- arguments: Additional properties are not allowed ('limit' was unexpected)"),
    );
    check_text(&json!([]), &format!("{head}\n- arguments: [] is not of type \"object\""));
}
