//! Values that fit, values that do not, and the places of problems.

use serde::Deserialize;

use super::*;

fn check(schema: Value, given: Value, expected: Result<Value, &str>) {
    let schema = OutputSchema::new(schema).unwrap();
    assert_eq!(schema.check(given), expected.map_err(str::to_owned));
}

#[test]
fn an_object_is_taken_as_it_is() {
    let schema =
        json!({"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]});
    check(schema.clone(), json!({"score": 3}), Ok(json!({"score": 3})));
    check(schema.clone(), json!({"score": "3"}), Err("\n- at /score: must be a whole number, got \"3\""));
    check(schema, json!({}), Err("\n- the answer: \"score\" is missing"));
}

#[test]
fn anything_else_is_a_field_of_an_object() {
    let list = json!({"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}});
    assert_eq!(OutputSchema::new(list.clone()).unwrap().asked()["type"], "object");
    check(list.clone(), json!({"value": [1, 2]}), Ok(json!([1, 2])));
    check(list.clone(), json!({"value": ["a"]}), Err("\n- at /value/0: must be a whole number, got \"a\""));
    check(list, json!([1]), Err("\n- the answer: must be an object with \"value\", got [1]"));
}

#[test]
fn a_type_has_a_form() {
    /// A verdict.
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema counts")]
    struct Verdict {
        /// From 1 to 5.
        score: u8,
    }
    let schema = OutputSchema::of::<Verdict>().unwrap();
    assert_eq!(schema.schema()["properties"]["score"]["description"], "From 1 to 5.");
    assert!(schema.check(json!({"score": 300})).is_err());
}

#[test]
fn what_is_no_schema_is_said() {
    let error = OutputSchema::new(json!({"type": "objekt"})).unwrap_err().to_string();
    assert!(error.starts_with("the output schema is not valid: "), "{error}");
}
