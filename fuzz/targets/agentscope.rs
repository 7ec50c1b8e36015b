//! Events of a task of AgentScope's Agent Protocol: whatever a server sends, its agent is a child
//! that ends once, in a lawful timeline, and its caller goes on.

use std::sync::{Arc, LazyLock, Mutex};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::header,
    response::IntoResponse,
    routing::{get, post},
};
use futures_util::{StreamExt, stream};
use mainstem::{model::scripted::Turn, prelude::*, spec::Protocol};
use mainstem_testing::{laws, render};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::{fuzz, input::Input};

/// A server whose events are those of the present input.
struct Server {
    runtime: Runtime,
    harness: Harness,
    pieces: Pieces,
}

type Pieces = Arc<Mutex<Vec<Vec<u8>>>>;

static SERVER: LazyLock<Server> = LazyLock::new(Server::start);

impl Server {
    fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let pieces = Pieces::default();
        let status = r#"{"status":"success","result":"The result."}"#;
        let routes = Router::new()
            .route("/tasks", post(|| async { "{}" }))
            .route("/tasks/{id}", get(move || async move { status }))
            .route("/tasks/{id}/cancel", post(|| async { "" }))
            .route("/tasks/{id}/resume", post(|| async { "{}" }))
            .route("/tasks/{id}/events", get(events))
            .with_state(pieces.clone());
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let spawn = json!({ "agent_id": "far", "task": "go" });
        let turns = [Turn::new().call("agent_spawn", spawn), Turn::new().text("All done.")];
        let far = AgentSpec::new("far", "Far away").with_url(url).with_protocol(Protocol::AgentScope);
        let harness = Harness::builder("main", ScriptedModel::new().agent("main", turns))
            .with_remote_host("127.0.0.1".parse().unwrap())
            .with_subagent(far)
            .build()
            .unwrap();
        Self { runtime, harness, pieces }
    }
}

async fn events(State(pieces): State<Pieces>) -> impl IntoResponse {
    // A reader that comes back finds nothing more.
    let pieces = std::mem::take(&mut *pieces.lock().unwrap());
    let body = stream::iter(pieces.into_iter().map(Ok::<_, std::convert::Infallible>));
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(body))
}

fn check(input: &Input) {
    let server = &*SERVER;
    *server.pieces.lock().unwrap() = input.pieces().map(<[u8]>::to_vec).collect();
    let events: Vec<_> = server.runtime.block_on(async {
        let mut run = server.harness.stream_events("go");
        let (handle, mut events) = (run.handle(), Vec::new());
        while let Some(event) = run.next().await {
            if let EventKind::RequireUserConfirm { confirm_id, .. } = &event.kind {
                let _ = handle.confirm(confirm_id, Decision::Allow);
            }
            events.push(event);
        }
        events
    });
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let ends = events.iter().filter(|event| {
        event.agent_id() == "far" && event.depth() == 1 && matches!(event.kind, EventKind::AgentEnd { .. })
    });
    assert_eq!(ends.count(), 1, "{}", render(&events));
    assert!(events.last().unwrap().kind.to_string().contains("success"), "{}", render(&events));
}

#[test]
fn agentscope() {
    fuzz!("agentscope", check);
}
