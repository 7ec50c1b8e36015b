//! Frames of a LangGraph run, and the state of its thread.

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

/// The state of the thread, unless the input has one.
const STATE: &str =
    r#"{"values":{"messages":[{"type":"ai","id":"last","content":"The result."}]},"next":[],"tasks":[]}"#;

static FAR: LazyLock<Far> =
    LazyLock::new(|| Far::start(Protocol::LangGraph, "/assistants/far", |_, sent| routes(sent)));

fn routes(sent: Sent) -> Router {
    let run = r#"{"run_id":"r","status":"success","metadata":{}}"#;
    let (begun, again, state) = (sent.clone(), sent.clone(), sent);
    let begin = move || async move { ([("content-location", "/threads/t/runs/r")], begun.stream()) };
    Router::new()
        .route("/threads/{thread}/runs/stream", post(begin))
        .route("/threads/{thread}/runs", get(|| async { "[]" }))
        .route("/threads/{thread}/runs/{run}", get(move || async move { run }))
        .route("/threads/{thread}/runs/{run}/stream", get(move || async move { again.stream() }))
        .route("/threads/{thread}/runs/{run}/cancel", post(|| async { "" }))
        .route("/threads/{thread}/state", get(move || async move { state.state(STATE) }))
}

fn check(input: &Input) {
    let _ = FAR.check(input);
}

#[test]
fn langgraph() {
    fuzz!("langgraph", check);
}
