//! The schema accepts exactly the events that can be read.

use schemars::schema_for;

use super::*;
use crate::fixture;

fn validator() -> jsonschema::Validator {
    jsonschema::draft202012::new(schema_for!(AgentEvent).as_value()).unwrap()
}

fn examples() -> Vec<Value> {
    let paths = ["", "a", "a/b"].into_iter().cycle();
    let events = (1..).zip(paths).zip(EventKind::examples());
    events.map(|((seq, path), kind)| serde_json::to_value(fixture::event(seq, path, kind)).unwrap()).collect()
}

#[test]
fn every_example_is_valid() {
    let validator = validator();
    for json in examples() {
        let errors: Vec<_> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{json}: {errors:?}");
    }
}

/// If a field of an example is left out or has another type, the schema refuses it exactly where
/// the reader does.
#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let validator = validator();
    let check = |json: &Value| {
        let read = serde_json::from_value::<AgentEvent>(json.clone());
        assert_eq!(validator.is_valid(json), read.is_ok(), "{json}: {read:?}");
        read.is_err()
    };
    let mut refused = 0;
    for json in examples() {
        for name in json.as_object().unwrap().keys().filter(|name| *name != "id") {
            let mut without = json.clone();
            without.as_object_mut().unwrap().remove(name);
            refused += usize::from(check(&without));
            let mut wrong = json.clone();
            wrong[name] = json!([[0.5]]);
            refused += usize::from(check(&wrong));
        }
    }
    assert!(refused > 300, "only {refused}");
}

#[test]
fn a_kind_has_no_field_of_the_envelopes_name() {
    let mut generator = SchemaGenerator::default();
    let names = envelope(&mut generator);
    for row in EventKind::table(&mut generator) {
        let clash: Vec<_> = row.fields.iter().filter(|field| names.contains_key(field.name)).collect();
        assert!(clash.is_empty(), "{}", row.tag);
    }
}

#[test]
fn the_table_has_a_line_for_each_kind() {
    let table = markdown_table();
    let tags: Vec<_> = table.lines().skip(2).filter_map(|line| line.split('`').nth(1)).collect();
    assert_eq!(tags, EventKind::NAMES);
    let line = "| `AGENT_START` | An invocation begins: always its first event. | `name`: The agent's name<br>`role`: The \
        role of its messages<br>`input`: The input; earlier invocations have the history before<br>\
        `parentToolCallId?`: The parent's call that caused it<br>`settings?`: The caller's settings of the run; only in \
        the first event of its root, if there are any<br>`specVersion?`: The version of the declaration that the agent was \
        spawned with; only in the first invocation of a child<br>`spec?`: That declaration, in the first event that names \
        the version; a server leaves it out for its readers |";
    assert_eq!(table.lines().nth(2), Some(line));
}
