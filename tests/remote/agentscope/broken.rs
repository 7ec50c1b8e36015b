//! Servers that break the Agent Protocol, each its own way.

use axum::{
    Router,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::json;
use tokio::net::TcpListener;

/// What a server responds: to a submission, to a request for the status, and as events.
#[derive(Clone)]
struct Responses {
    submit: (StatusCode, &'static str),
    status: &'static str,
    events: String,
}

/// Starts one of each kind; returns their addresses.
pub(super) async fn servers() -> Vec<String> {
    let running = r#"{"task_id":"t","status":"running"}"#;
    let fine = Responses {
        submit: (StatusCode::OK, "{}"),
        status: r#"{"status":"success","result":"Done."}"#,
        events: String::new(),
    };
    let events = |events: &[serde_json::Value]| -> String {
        events.iter().map(|event| format!("data: {event}\n\n")).collect()
    };
    let custom = json!({ "type": "CUSTOM", "name": "mainstem.AGENT_START", "value": {
        "type": "AGENT_START", "name": "n", "role": "assistant", "input": [] } });
    let below = json!({ "type": "AGENT_START", "name": "kid", "metadata": { "mainstem": { "source": {
        "agentKey": "agent:kid:1", "agentId": "kid", "sessionId": "sub-kid", "parentSessionId": "main",
        "depth": 1, "path": "x/kid", "turn": 1, "streamId": 1 } } } });
    let payload =
        |payload: &serde_json::Value| json!({ "type": "AGENT_EVENT", "payload": payload.to_string() });
    let kinds = [
        Responses {
            submit: (StatusCode::INTERNAL_SERVER_ERROR, "out of order"),
            status: "out of order",
            ..fine.clone()
        },
        Responses { submit: (StatusCode::OK, "<html>"), ..fine.clone() },
        Responses { status: "<html>", ..fine.clone() },
        Responses { status: running, events: "data: <html>\n\n".to_owned(), ..fine.clone() },
        Responses { status: running, events: "data: {\"seq\":[]}\n\n".to_owned(), ..fine.clone() },
        Responses { status: running, events: format!("data: {}\n\n", "x".repeat(5 << 20)), ..fine.clone() },
        Responses { status: running, events: events(&[payload(&custom)]), ..fine.clone() },
        Responses { status: running, events: events(&[payload(&below)]), ..fine.clone() },
        Responses {
            status: r#"{"status":"success"}"#,
            events: events(&[json!({ "type": "STATUS", "status": "success" })]),
            ..fine
        },
    ];
    let mut urls = Vec::new();
    for kind in kinds {
        urls.push(start(kind).await);
    }
    urls
}

async fn start(responses: Responses) -> String {
    let Responses { submit, status, events } = responses;
    let events = move || {
        let events = events.clone();
        async move { ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response() }
    };
    let status = move || async move { Response::new(status.to_owned()) };
    let routes = Router::new()
        .route("/tasks", post(move || async move { submit }))
        .route("/tasks/{id}", get(status))
        .route("/tasks/{id}/wait", get(status))
        .route("/tasks/{id}/cancel", post(|| async { StatusCode::OK }))
        .route("/tasks/{id}/events", get(events));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    url
}
