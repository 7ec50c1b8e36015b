//! Requests of every API.

use std::sync::Arc;

use mainstem_http::Api;
use mainstem_message::{ContentBlock, Message, Role, ToolCall};
use mainstem_model::{ModelOptions, ModelRequest};
use serde_json::{Value, json};

use super::Sample;

/// Invalid arguments of a model are wrapped when they are sent back, because a server would refuse
/// the whole request.
pub fn a_slip_in_the_arguments_does_not_break_the_next_request<A: Api>(_: Sample) {
    for (written, sent) in [
        ("", json!({})),
        (" \n", json!({})),
        (" {\"a\": [1, {}]} ", json!({ "a": [1, {}] })),
        ("{\"a\": ", json!({ "invalid_arguments": "{\"a\": " })),
        ("[1]", json!({ "invalid_arguments": "[1]" })),
        ("{} {}", json!({ "invalid_arguments": "{} {}" })),
    ] {
        let plain = body::<A>(written, ModelOptions::new());
        assert!(holds(&plain, &sent), "{written}: {plain}");
        // The same with fields of the caller's own.
        let mut options = ModelOptions::new();
        options.extra.insert("x".into(), 1.into());
        let merged = body::<A>(written, options);
        assert!(holds(&merged, &sent) && merged["x"] == 1, "{written}: {merged}");
    }
}

/// Returns the body of a request with a call that has these arguments.
fn body<A: Api>(arguments: &str, options: ModelOptions) -> Value {
    let call = ContentBlock::ToolCall(ToolCall::new("c", "f", arguments));
    let messages = vec![Arc::new(Message::new(Role::Assistant, vec![call]))];
    let request = ModelRequest { messages, options: Arc::new(options), ..ModelRequest::default() };
    let body = A::default().body("m", &request, &A::Dialect::default()).unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// Returns `true` if a value occurs in a body, or as JSON in one of its strings.
fn holds(body: &Value, expected: &Value) -> bool {
    body == expected
        || match body {
            Value::String(text) => serde_json::from_str::<Value>(text).is_ok_and(|value| value == *expected),
            Value::Array(items) => items.iter().any(|item| holds(item, expected)),
            Value::Object(fields) => fields.values().any(|value| holds(value, expected)),
            _ => false,
        }
}
