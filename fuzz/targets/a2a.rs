//! Updates of an A2A task, and its state, from a server without our extension and from one with it.

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

static PLAIN: LazyLock<Far> =
    LazyLock::new(|| Far::start(Protocol::A2a, "", |url, sent| routes(url, sent, &[])));
static EXTENDED: LazyLock<Far> =
    LazyLock::new(|| Far::start(Protocol::A2a, "", |url, sent| routes(url, sent, &[EXTENSION])));

fn routes(url: &str, sent: Sent, extensions: &[&str]) -> Router {
    let extensions: Vec<_> = extensions.iter().map(|uri| json!({ "uri": uri })).collect();
    let rpc = json!({ "url": format!("{url}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0" });
    let card = json!({
        "name": "far", "description": "Far away", "version": "1", "supportedInterfaces": [rpc], "skills": [],
        "capabilities": { "streaming": true, "extensions": extensions },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
    });
    Router::new()
        .route("/.well-known/agent-card.json", get(move || async move { Json(card) }))
        .route("/rpc", post(move |Json(request): Json<Value>| async move { answer(&request, &sent) }))
}

fn answer(request: &Value, sent: &Sent) -> Response {
    let refused = || Json(json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32004, "message": "no" } }));
    match request["method"].as_str() {
        Some("SendStreamingMessage") => sent.stream(),
        Some("GetTask") => ([("content-type", "application/json")], sent.state(STATE)).into_response(),
        _ => refused().into_response(),
    }
}

#[test]
fn a2a() {
    fuzz!("a2a", |input: &Input| _ = PLAIN.check(input));
}

#[test]
fn a2a_events() {
    fuzz!("a2a_events", |input: &Input| _ = EXTENDED.check(input));
}
