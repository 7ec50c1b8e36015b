//! Updates of an A2A task, and its state: over both bindings, from a server that does not stream,
//! and from one with our extension.

use std::sync::LazyLock;

use axum::{
    Json, Router,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use mainstem::spec::Protocol;
use serde_json::{Value, json};

use crate::{
    fuzz,
    input::Input,
    remote::{Far, Sent},
};

/// The extension of Mainstem's servers.
const EXTENSION: &str = "https://github.com/mainstem-rs/mainstem/a2a/events/v1";

/// The response with the state of the task, unless the input has one.
const STATE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"last","parts":[{"text":"The result."}]}]}}"#;

/// The same, over HTTP+JSON.
static REST_STATE: LazyLock<String> =
    LazyLock::new(|| serde_json::from_str::<Value>(STATE).unwrap()["result"].to_string());

static PLAIN: LazyLock<Far> = LazyLock::new(|| start("JSONRPC", true, &[]));
static POLLED: LazyLock<Far> = LazyLock::new(|| start("JSONRPC", false, &[]));
static REST: LazyLock<Far> = LazyLock::new(|| start("HTTP+JSON", true, &[]));
static EXTENDED: LazyLock<Far> = LazyLock::new(|| start("JSONRPC", true, &[EXTENSION]));

fn start(binding: &str, has_streams: bool, extensions: &[&str]) -> Far {
    let extensions: Vec<_> = extensions.iter().map(|uri| json!({ "uri": uri })).collect();
    let card = |url: &str| {
        let url = if binding == "JSONRPC" { format!("{url}/rpc") } else { url.to_owned() };
        let interface = json!({ "url": url, "protocolBinding": binding, "protocolVersion": "1.0" });
        json!({
            "name": "far", "description": "Far away", "version": "1", "supportedInterfaces": [interface],
            "capabilities": { "streaming": has_streams, "extensions": extensions }, "skills": [],
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        })
    };
    Far::start(Protocol::A2a, "", |url, sent| routes(card(url), sent))
}

fn routes(card: Value, sent: Sent) -> Router {
    let (of_stream, of_state) = (sent.clone(), sent.clone());
    Router::new()
        .route("/.well-known/agent-card.json", get(move || async move { Json(card) }))
        .route("/rpc", post(move |Json(request): Json<Value>| async move { answer(&request, &sent) }))
        .route("/message:stream", post(move || async move { of_stream.stream() }))
        .route("/tasks/{id}", get(move || async move { state(&of_state, &REST_STATE) }))
}

fn answer(request: &Value, sent: &Sent) -> Response {
    let refused = || Json(json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32004, "message": "no" } }));
    match request["method"].as_str() {
        Some("SendStreamingMessage") => sent.stream(),
        Some("SendMessage") => Json(json!({ "jsonrpc": "2.0", "id": 1, "result": { "task": {
            "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_WORKING" },
        } } }))
        .into_response(),
        Some("GetTask") => state(sent, STATE),
        _ => refused().into_response(),
    }
}

fn state(sent: &Sent, otherwise: &str) -> Response {
    ([("content-type", "application/json")], sent.state(otherwise)).into_response()
}

#[test]
fn a2a() {
    fuzz!("a2a", |input: &Input| _ = PLAIN.check(input));
}

#[test]
fn a2a_events() {
    fuzz!("a2a_events", |input: &Input| _ = EXTENDED.check(input));
}

/// What a server shows instead of a stream: the inputs are states.
#[test]
fn a2a_state() {
    fuzz!("a2a_state", |input: &Input| _ = POLLED.check(input));
}

#[test]
fn a2a_rest() {
    fuzz!("a2a_rest", |input: &Input| _ = REST.check(input));
}
