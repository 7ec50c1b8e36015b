//! Mainstem's own events of a run, as a remote agent's server sends them.

use std::sync::LazyLock;

use axum::{
    Router,
    extract::Path,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::{get, post},
};
use mainstem::{event::Outcome, spec::Protocol};

use crate::{
    corpus, fuzz,
    input::Input,
    remote::{Far, Sent},
};

/// Stands in an input for the session that the caller has named.
const SESSION: &[u8] = b"SESSION";

static FAR: LazyLock<Far> =
    LazyLock::new(|| Far::start(Protocol::Mainstem, "/v1/agents/far", |_, sent| routes(sent)));

fn routes(sent: Sent) -> Router {
    let begin = |Path(session): Path<String>| async move { (StatusCode::ACCEPTED, run(&session)) };
    let events = move |Path(session): Path<String>| {
        let sent = sent.clone();
        async move { sent.replaced(SESSION, session.as_bytes()).map_or_else(over, lines) }
    };
    Router::new()
        .route("/v1/sessions/{session}/runs", post(begin))
        .route("/v1/sessions/{session}/events", get(events))
        .route("/v1/sessions/{session}/confirmations/{id}", post(|| async { r#"{"approved":true}"# }))
        .route("/v1/runs/{run}", get(|| async { run("s") }))
        .route("/v1/runs/{run}/cancel", post(|| async { run("s") }))
}

fn run(session: &str) -> String {
    format!(
        r#"{{"id":"run-1","session_id":"{session}","status":"running","first_seq":1,"created_at":"2026-11-29T00:00:00.000000Z"}}"#
    )
}

/// A reader that comes back finds nothing more.
fn over() -> axum::response::Response {
    StatusCode::NO_CONTENT.into_response()
}

fn lines(body: axum::body::Body) -> axum::response::Response {
    ([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}

fn check(input: &Input) {
    let _ = FAR.check(input);
}

#[test]
fn mainstem_remote() {
    fuzz!("mainstem_remote", check);
}

/// A server that refused all inputs would find nothing.
#[test]
fn the_corpus_is_admitted_or_ends_the_turn() {
    for (name, bytes) in corpus::read("mainstem_remote") {
        let succeeds = !["error", "gap", "unlawful"].iter().any(|bad| name.contains(bad));
        let outcome = FAR.check(&Input { bytes, cuts: Vec::new() });
        assert_eq!(outcome == Outcome::Success, succeeds, "{name}: {outcome:?}");
    }
}
