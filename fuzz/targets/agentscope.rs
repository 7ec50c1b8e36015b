//! Events of a task of AgentScope's Agent Protocol.

use std::sync::LazyLock;

use axum::{
    Router,
    routing::{get, post},
};
use mainstem::spec::Protocol;

use crate::{
    fuzz,
    input::Input,
    remote::{Far, Sent},
};

static FAR: LazyLock<Far> = LazyLock::new(|| Far::start(Protocol::AgentScope, "", |_, sent| routes(sent)));

fn routes(sent: Sent) -> Router {
    let status = r#"{"status":"success","result":"The result."}"#;
    Router::new()
        .route("/tasks", post(|| async { "{}" }))
        .route("/tasks/{id}", get(move || async move { status }))
        .route("/tasks/{id}/cancel", post(|| async { "" }))
        .route("/tasks/{id}/resume", post(|| async { "{}" }))
        .route("/tasks/{id}/events", get(move || async move { sent.stream() }))
}

fn check(input: &Input) {
    let _ = FAR.check(input);
}

#[test]
fn agentscope() {
    fuzz!("agentscope", check);
}
