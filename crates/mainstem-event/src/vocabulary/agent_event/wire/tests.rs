//! Writing and reading; one file for each kind, never changed, in `tests/wire`.

use std::{fs, path::Path, sync::LazyLock};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixture;

/// The fields that hold one of a few words, or a time.
const WORDS: [&str; 9] =
    ["type", "role", "outcome", "state", "mode", "stopReason", "createdAt", "blocks", "limit"];

/// The fields that hold an id with a grammar.
const IDS: [&str; 8] =
    ["sessionId", "parentSessionId", "runId", "replyId", "agentKey", "taskId", "blockId", "confirmId"];

fn path(tag: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/wire/{tag}.json"))
}

/// Returns the wire file of a kind.
fn wire(tag: &str) -> Value {
    let text = fs::read_to_string(path(tag)).unwrap_or_else(|error| panic!("tests/wire/{tag}.json: {error}"));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_file_is_read_and_written_back_equal() {
    for entry in fs::read_dir(path("X").parent().unwrap()).unwrap() {
        let file = entry.unwrap().path();
        let tag = file.file_stem().unwrap().to_str().unwrap();
        let event: AgentEvent = serde_json::from_value(wire(tag)).unwrap();
        assert_eq!(serde_json::to_value(&event).unwrap(), wire(tag), "{tag}");
        assert_eq!(event.kind.name(), tag);
    }
}

#[test]
fn every_kind_has_a_file() {
    for example in EventKind::examples() {
        let known = serde_json::from_value::<AgentEvent>(wire(example.name())).unwrap();
        let is_known = !matches!(known.kind, EventKind::Unknown { .. });
        assert_eq!(is_known, EventKind::NAMES.contains(&example.name()), "{}", example.name());
    }
}

/// A root called `main` has no `rootId`, as in records of earlier versions.
#[test]
fn the_roots_id_comes_back_and_is_its_label() {
    for (id, field) in [("coordinator", Some("coordinator")), ("main", None)] {
        let origin = Origin::root(
            "s".parse().unwrap(),
            "run-1".parse().unwrap(),
            "reply-1".parse().unwrap(),
            &id.into(),
        );
        let event = AgentEvent::new(
            1,
            fixture::NOW,
            Arc::new(origin),
            EventKind::TextBlockStart { block_id: "b".parse().unwrap() },
        );
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!(json.get("rootId").and_then(Value::as_str), field);
        let back: AgentEvent = serde_json::from_value(json).unwrap();
        assert_eq!((back.agent_label(), &back), (id, &event));
    }
}

#[test]
fn every_example_comes_back() {
    for example in EventKind::examples() {
        let event = fixture::event(3, "a/b", example);
        assert_eq!(serde_json::from_str::<AgentEvent>(&event.to_json()).unwrap(), event);
    }
}

#[test]
fn an_event_is_written_in_this_order() {
    let event = fixture::event(3, "", fixture::text("b", "Hi"));
    assert_eq!(
        event.to_json(),
        r#"{"type":"TEXT_BLOCK_DELTA","seq":3,"id":"s.3","sessionId":"s","runId":"run-1","createdAt":"2026-11-18T11:06:40.000000Z","replyId":"reply-","blockId":"b","delta":"Hi"}"#
    );
}

/// Earlier and looser forms.
#[test]
fn what_is_absent_may_be_missing_or_null() {
    let check = |tag: &str, change: Value, expected: Value| {
        let mut json = wire(tag);
        for (name, value) in change.as_object().unwrap() {
            json[name] = value.clone();
        }
        let event: AgentEvent = serde_json::from_value(json).unwrap();
        let written = serde_json::to_value(&event).unwrap();
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(written.get(name).unwrap_or(&Value::Null), value, "{tag} {change} {name}");
        }
    };
    let none = json!({ "runId": null, "replyId": null, "source": null, "metadata": null });
    check("TEXT_BLOCK_DELTA", none.clone(), none);
    check("AGENT_START", json!({ "parentToolCallId": null }), json!({ "parentToolCallId": null }));
    check("AGENT_END", json!({ "error": null }), json!({ "error": null }));
    check("AGENT_END", json!({ "usage": { "own": {}, "inclusive": {} } }), json!({ "outcome": "error" }));
    check("MODEL_CALL_END", json!({ "usage": null }), json!({ "usage": null }));
    check("TOOL_CALL_END", json!({ "opaque": null }), json!({ "opaque": null }));
    check("TOOL_CALL_END", json!({ "opaque": {} }), json!({ "opaque": null }));
    check("TASK_UPDATED", json!({ "error": null }), json!({ "error": null }));
    check("CUSTOM", json!({ "value": null }), json!({ "value": null }));
    check("TOOL_RESULT_START", json!({ "input": null }), json!({ "input": null }));
    // Fields that a later version adds to a known kind are ignored; the id is computed.
    check("TEXT_BLOCK_DELTA", json!({ "mood": "good", "id": 7 }), json!({ "mood": null, "delta": "Hello" }));
    check("TEXT_BLOCK_DELTA", json!({ "createdAt": "2026-11-21T10:00:00Z" }), json!({ "delta": "Hello" }));
    // All fields of an unknown kind stay, including nulls.
    check("FROM_THE_FUTURE", json!({ "more": [1, null] }), json!({ "answer": 42, "more": [1, null] }));
}

#[test]
fn only_the_envelope_is_needed_and_the_type_may_come_last() {
    let json =
        r#"{"b":1,"a":null,"seq":1,"createdAt":"2026-11-21T10:00:00Z","sessionId":"s","type":"LATER"}"#;
    let event: AgentEvent = serde_json::from_str(json).unwrap();
    assert_eq!(
        event.to_json(),
        r#"{"type":"LATER","seq":1,"id":"s.1","sessionId":"s","createdAt":"2026-11-21T10:00:00.000000Z","b":1,"a":null}"#
    );
}

#[test]
fn an_error_names_the_field_and_the_kind() {
    let check = |change: Value, expected: &str| {
        let mut json = wire("TEXT_BLOCK_DELTA");
        for (name, value) in change.as_object().unwrap() {
            match value {
                Value::String(gone) if gone == "gone" => _ = json.as_object_mut().unwrap().remove(name),
                value => json[name] = value.clone(),
            }
        }
        let error = serde_json::from_value::<AgentEvent>(json).unwrap_err().to_string();
        assert_eq!(error, expected, "{change}");
    };
    check(json!({ "type": "gone" }), r#"an event has no field "type""#);
    check(json!({ "seq": "gone" }), r#"TEXT_BLOCK_DELTA has no field "seq""#);
    check(json!({ "sessionId": "gone" }), r#"TEXT_BLOCK_DELTA has no field "sessionId""#);
    check(json!({ "createdAt": "gone" }), r#"TEXT_BLOCK_DELTA has no field "createdAt""#);
    check(json!({ "delta": "gone" }), r#"TEXT_BLOCK_DELTA has no field "delta""#);
    check(
        json!({ "delta": null }),
        r#"field "delta" of TEXT_BLOCK_DELTA: invalid type: null, expected a string"#,
    );
    check(
        json!({ "delta": 7 }),
        r#"field "delta" of TEXT_BLOCK_DELTA: invalid type: integer `7`, expected a string"#,
    );
    check(json!({ "type": 7 }), r#"field "type" of an event: invalid type: integer `7`, expected a string"#);
    check(json!({ "seq": "7" }), r#"field "seq" of an event: invalid type: string "7", expected u64"#);
    check(json!({ "seq": -1 }), r#"field "seq" of an event: invalid value: integer `-1`, expected u64"#);
    check(
        json!({ "createdAt": "noon" }),
        r#"field "createdAt" of an event: not an RFC 3339 time "noon": timestamp format is invalid"#,
    );
    check(json!({ "source": {} }), r#"field "source" of an event: missing field `agentKey`"#);
    check(json!({ "type": "AGENT_RESULT" }), r#"AGENT_RESULT has no field "result""#);
}

#[test]
fn an_error_in_a_text_has_its_place() {
    let error = serde_json::from_str::<AgentEvent>("{\"type\":\"X\",\n\"seq\":true}").unwrap_err();
    assert_eq!((error.line(), error.column()), (2, 10), "{error}");
    assert!(error.to_string().starts_with(r#"field "seq" of an event: "#), "{error}");
    let error = serde_json::from_str::<AgentEvent>("[1]").unwrap_err().to_string();
    assert_eq!(error, "invalid type: sequence, expected an event, which is a JSON object at line 1 column 0");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|list| Value::Object(list.into_iter().collect())),
        ]
    })
}

/// Fields whose names are not in the envelope.
fn any_fields() -> impl Strategy<Value = Map<String, Value>> {
    let name = any::<String>().prop_map(|name| format!("x{name}"));
    prop::collection::vec((name, any_json()), 0..4).prop_map(|list| list.into_iter().collect())
}

/// Replaces each free text.
fn fill(value: &mut Value, texts: &mut impl Iterator<Item = String>) {
    match value {
        Value::String(text) => *text = texts.next().unwrap(),
        Value::Array(list) => list.iter_mut().for_each(|value| fill(value, texts)),
        Value::Object(map) => {
            let is_task = map.get("type").is_some_and(|tag| tag == "TASK_UPDATED");
            let is_word = |name: &str| WORDS.contains(&name) || is_task && matches!(name, "from" | "to");
            let is_message = map.contains_key("role");
            let is_id = |name: &str| IDS.contains(&name) || is_message && name == "id";
            for (name, value) in map.iter_mut().filter(|(name, _)| !is_word(name)) {
                fill(value, texts);
                if let Some(text) = value.as_str().filter(|_| is_id(name)) {
                    *value = json!(RunId::from_lossy(text));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn any_event() -> impl Strategy<Value = AgentEvent> {
    let kinds = EventKind::examples().len();
    let texts = prop::collection::vec(any::<String>(), 1..8);
    (0..kinds, any::<u64>(), texts, any_fields(), any_json()).prop_map(
        |(index, seq, texts, fields, value)| {
            let mut kind = EventKind::examples().swap_remove(index);
            match &mut kind {
                EventKind::Unknown { value, .. } => value.clone_from(&fields),
                EventKind::Custom { value: inner, .. } | EventKind::ToolResultStart { input: inner, .. } => {
                    *inner = value;
                }
                _ => {}
            }
            let path = ["", "a", "a/b"][index % 3];
            let event = fixture::event(seq, path, kind).with_metadata(fields);
            let mut json = serde_json::to_value(&event).unwrap();
            fill(&mut json, &mut texts.into_iter().cycle());
            serde_json::from_value(json).unwrap()
        },
    )
}

static EXAMPLES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let events = EventKind::examples().into_iter().map(|kind| fixture::event(1, "a", kind));
    events.map(|event| serde_json::to_value(event).unwrap()).collect()
});

/// Inserts a value somewhere into another.
fn disturb(value: &mut Value, mut place: usize, with: &Value) {
    let inner: Vec<&mut Value> = match value {
        Value::Array(list) => list.iter_mut().collect(),
        Value::Object(map) => map.values_mut().collect(),
        _ => Vec::new(),
    };
    let count = inner.len() + 1;
    match inner.into_iter().nth(place % count) {
        None => *value = with.clone(),
        Some(inner) => {
            place /= count;
            disturb(inner, place, with);
        }
    }
}

proptest! {
    #[test]
    fn any_event_comes_back(event in any_event()) {
        prop_assert_eq!(&serde_json::from_str::<AgentEvent>(&event.to_json()).unwrap(), &event);
        let value = serde_json::to_value(&event).unwrap();
        prop_assert_eq!(serde_json::from_value::<AgentEvent>(value).unwrap(), event);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn nothing_panics(index in 0..EXAMPLES.len(), place: usize, with in any_json(), cut: prop::sample::Index) {
        let mut json = EXAMPLES[index].clone();
        disturb(&mut json, place, &with);
        if let Ok(event) = serde_json::from_value::<AgentEvent>(json.clone()) {
            prop_assert_eq!(serde_json::from_str::<AgentEvent>(&event.to_json()).unwrap(), event);
        }
        let mut bytes = json.to_string().into_bytes();
        bytes.truncate(cut.index(bytes.len()));
        prop_assert!(serde_json::from_slice::<AgentEvent>(&bytes).is_err());
    }
}
