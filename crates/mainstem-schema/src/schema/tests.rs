//! Which schemas are compiled, and how long hostile ones take.

mod fit;

use std::time::{Duration, Instant};

use serde_json::json;

use super::*;

/// `levels` definitions, each of which applies the next twice.
fn doubling(levels: usize) -> Value {
    let mut definitions = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({ "$ref": format!("#/$defs/a{}", level + 1) });
        definitions.insert(format!("a{level}"), json!({ "allOf": [next, next] }));
    }
    definitions.insert(format!("a{levels}"), json!({ "type": "integer" }));
    json!({ "$ref": "#/$defs/a0", "$defs": definitions })
}

fn patterns(count: usize, pattern: &str) -> Value {
    let fields =
        (0..count).map(|index| (format!("p{index}"), json!({ "pattern": format!("{pattern}{index}") })));
    json!({ "properties": fields.collect::<serde_json::Map<_, _>>() })
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({ "not": inner }))
}

fn compile(schema: &Value) -> Result<Schema, SchemaError> {
    Schema::compile(schema.clone().into())
}

fn refused(schema: &Value) -> String {
    let begun = Instant::now();
    let error = compile(schema).unwrap_err().to_string();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}: {error}", begun.elapsed());
    error
}

#[test]
fn each_limit_is_named_where_it_is_passed() {
    #[track_caller]
    fn check(schema: &Value, expected: &str) {
        let error = refused(schema);
        assert!(error.contains(expected), "{error}");
    }
    check(&json!({ "description": "x".repeat(300 << 10) }), "at most 262144 bytes is allowed (schema_bytes)");
    check(&nested(70), "(schema_nesting)");
    check(&json!({ "anyOf": vec![json!(true); 5000] }), "(schema_subschemas)");
    check(
        &patterns(200, r"\p{L}{150}q"),
        "more than 64 patterns, and at most 64 patterns is allowed (schema_patterns)",
    );
    check(&json!({ "pattern": "x".repeat(2000) }), "a pattern has 2000 bytes");
    check(
        &patterns(60, r"\p{L}{150}q"),
        "or one that compiles to more than 65536 bytes (schema_compiled_pattern)",
    );
    check(&doubling(28), "(schema_steps)");
    let chain: serde_json::Map<_, _> = (0..100)
        .map(|level| (format!("a{level}"), json!({ "$ref": format!("#/$defs/a{}", level + 1) })))
        .collect();
    let mut chain = json!({ "$ref": "#/$defs/a0", "$defs": chain });
    chain["$defs"]["a100"] = json!(true);
    check(&chain, "(schema_chain)");
}

#[test]
fn a_schema_that_applies_itself_to_the_same_value_is_refused() {
    #[track_caller]
    fn check(schema: Value) {
        assert!(refused(&schema).contains("without end"));
    }
    check(json!({ "$ref": "#" }));
    check(json!({ "allOf": [{ "$ref": "#" }] }));
    check(
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/b" }] }, "b": { "$ref": "#/$defs/a" } } }),
    );
    assert!(refused(&json!({ "$ref": "https://example.com/other" })).contains("does not contain"));
    assert!(refused(&json!({ "$ref": "#/$defs/none" })).contains("does not contain"));
}

#[test]
fn schemas_that_people_write_are_compiled() {
    #[track_caller]
    fn check(schema: Value, fits: Value, does_not: Value) {
        let compiled = compile(&schema).unwrap();
        assert_eq!(compiled.check(&fits, "it"), Ok(()));
        assert!(compiled.check(&does_not, "it").is_err());
    }
    // A tree; a list of expressions, each of them one of several kinds; names by anchor and by an
    // encoded pointer.
    let tree = json!({ "type": "object", "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" } }, "additionalProperties": false });
    check(tree, json!({ "left": { "right": {} } }), json!({ "left": { "middle": {} } }));
    let kinds: Vec<_> = ["and", "or", "not", "all", "any"]
        .iter()
        .map(|kind| json!({ "properties": { "kind": { "const": kind }, "of": { "items": { "$ref": "#/$defs/e" } } }, "required": ["kind"] }))
        .collect();
    let expression = json!({ "$ref": "#/$defs/e", "$defs": { "e": { "oneOf": kinds } } });
    let value = json!({ "kind": "and", "of": [{ "kind": "or", "of": [{ "kind": "not", "of": [] }] }] });
    check(expression, value, json!({ "kind": "xor" }));
    let anchored = json!({ "items": { "$ref": "#word" }, "$defs": { "a b": { "$anchor": "word", "pattern": "^[a-z]+$" } } });
    check(anchored, json!(["a"]), json!(["1"]));
    check(
        json!({ "items": { "$ref": "#/$defs/a%20b" }, "$defs": { "a b": { "type": "string" } } }),
        json!(["a"]),
        json!([1]),
    );
    check(doubling(8), json!(1), json!("x"));
    check(patterns(60, "^[a-z]{1,20}"), json!({ "p0": "a0" }), json!({ "p0": "?" }));
}

#[test]
fn a_value_that_would_take_too_long_is_not_checked() {
    // Each level of the value doubles the work.
    let double = json!({ "allOf": [{ "properties": { "a": { "$ref": "#" } } }, { "properties": { "a": { "$ref": "#" } } }] });
    let schema = compile(&double).unwrap();
    let deep = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({ "a": inner }));
    assert_eq!(schema.check(&deep(8), "it"), Ok(()));
    let begun = Instant::now();
    let problems = schema.check(&deep(60), "it").unwrap_err();
    assert!(
        problems.contains("can't be checked: it takes up to") && problems.contains("(schema_work)"),
        "{problems}"
    );
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_part_that_has_a_name_of_its_own_is_refused() {
    #[track_caller]
    fn check(schema: &Value, expected: &str) {
        let error = refused(schema);
        assert!(error.contains(expected), "{error}");
    }
    // References in such a part lead to its own definitions, each of which applies the next twice;
    // those of the root are harmless.
    let harmless: serde_json::Map<_, _> = (0..=40).map(|level| (format!("a{level}"), json!(true))).collect();
    let mut inner = doubling(40);
    inner["$id"] = json!("http://x/y");
    let hostile = json!({ "$defs": harmless, "allOf": [inner] });
    check(&hostile, "at /allOf/0, a part of the schema has a `$id`");
    let mut old = hostile;
    old["$schema"] = json!("http://json-schema.org/draft-04/schema#");
    old["allOf"][0]["id"] = old["allOf"][0].as_object_mut().unwrap().remove("$id").unwrap();
    check(&old, "at /allOf/0, a part of the schema has a `id`");
    let nested = json!({ "$defs": { "a": { "$schema": "http://json-schema.org/draft-04/schema#" } } });
    check(&nested, "at /$defs/a, a part of the schema has a `$schema`");
    let twice = json!({ "items": { "$ref": "#a" }, "$defs": { "a": { "$anchor": "a" }, "b": { "$dynamicAnchor": "a" } } });
    check(&twice, "two parts of the schema have the anchor \"a\"");

    // A property is called what it is called, and the whole schema may have a name.
    let plain = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.com/person",
        "properties": { "id": { "$ref": "#/$defs/id" }, "$id": { "type": "string" } },
        "$defs": { "id": { "type": "string", "default": { "id": "x" } } },
    });
    assert!(compile(&plain).unwrap().validator.is_valid(&json!({ "id": "x", "$id": "y" })));
}

#[test]
fn only_the_problems_that_are_shown_are_written() {
    let schema = json!({ "allOf": vec![json!({ "type": "integer" }); 4000] });
    let compiled = compile(&schema).unwrap();
    // Written whole for each problem, these are 4 GB.
    let value = json!(vec!["x".repeat(10 << 10); 100]);
    let begun = Instant::now();
    let problems = compiled.check(&value, "it").unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(problems.ends_with("- and 3995 more") && problems.len() < 1000, "{problems}");
    // A list of what is allowed has each once, however long it is.
    let names: Vec<_> = (0..20_000).map(|name| json!(format!("n{name}"))).collect();
    let schema = json!({ "enum": names });
    let compiled = compile(&schema).unwrap();
    let begun = Instant::now();
    let problems = compiled.check(&json!("x"), "it").unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(problems.contains("or one of 19970 more, got \"x\""), "{problems}");
}
