//! Events and messages of a session of AgentScope's service.

use std::sync::{Arc, LazyLock, Mutex};

use axum::{
    Json, Router,
    routing::{get, patch, post},
};
use mainstem::spec::Protocol;
use serde_json::Value;

use crate::{
    fuzz,
    input::Input,
    remote::{Far, Sent},
};

/// The stored reply, unless the input has one.
const REPLY: &str = r#"{"id":"r","role":"assistant","finished_reason":"completed","content":[{"type":"text","id":"t","text":"The result."}]}"#;

static FAR: LazyLock<Far> =
    LazyLock::new(|| Far::start(Protocol::AgentScope, "/agents/far", |_, sent| routes(sent)));

fn routes(sent: Sent) -> Router {
    let agents = r#"{"agents":[{"id":"a","data":{"name":"far"}}]}"#;
    let sessions =
        r#"{"sessions":[{"session":{"id":"first","config":{"name":"first","chat_model_config":{}}}}]}"#;
    let health = r#"{"version":"2","components":{"chat_run_registry":"ok"}}"#;
    let asked = Arc::<Mutex<String>>::default();
    let (stored, stream) = (asked.clone(), sent.clone());
    let chat = move |Json(body): Json<Value>| async move {
        if let Some(id) = body["input"]["id"].as_str() {
            id.clone_into(&mut asked.lock().unwrap());
        }
        r#"{"status":"started"}"#
    };
    let messages = move || async move {
        let (id, reply) = (stored.lock().unwrap().clone(), sent.state(REPLY));
        let reply = String::from_utf8_lossy(&reply).into_owned();
        format!(r#"{{"messages":[{{"id":"{id}","role":"user"}},{reply}]}}"#)
    };
    Router::new()
        .route("/health", get(move || async move { health }))
        .route("/agent/", get(move || async move { agents }))
        .route("/sessions/", get(move || async move { sessions }).post(|| async { r#"{"session_id":"s"}"# }))
        .route("/sessions/{id}", patch(|| async { "{}" }))
        .route("/sessions/{id}/messages", get(messages))
        .route("/sessions/{id}/status", get(|| async { r#"{"status":"idle"}"# }))
        .route("/sessions/{id}/stream", get(move || async move { stream.stream() }))
        .route("/sessions/{id}/interrupt", post(|| async { "{}" }))
        .route("/chat/", post(chat))
}

fn check(input: &Input) {
    let _ = FAR.check(input);
}

#[test]
fn agentscope_service() {
    // The recordings of its tests.
    fuzz!("../../crates/mainstem-remote/tests/fixtures/agentscope_service", check);
}
