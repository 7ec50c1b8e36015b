//! Servers that break Mainstem's own protocol, or the laws of its events, each its own way; and
//! those of other protocols.

pub(crate) mod a2a;
pub(crate) mod langgraph;

use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::{StreamExt, future::join_all};
use mainstem::{model::scripted::Turn, prelude::*};
use mainstem_testing::remote::{Act, FAR};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    chain::{builder, child_end, events as events_of, remote},
    support::Spawns,
};

/// Stands for the id of the child's session in what a server responds.
const SESSION: &str = "THE-SESSION";

/// How many of the kinds end well.
const REPAIRED: usize = 2;

/// What a server responds: to the request that begins a run, and as events, which it sends once.
#[derive(Clone)]
struct Responses {
    begin: (StatusCode, String),
    events: (StatusCode, String),
}

impl Responses {
    fn new(begin: &str, events: &[Value]) -> Self {
        let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
        Self { begin: (StatusCode::CREATED, begin.to_owned()), events: (StatusCode::OK, lines) }
    }
}

/// Servers, each with what it breaks.
type Started = Vec<(&'static str, String)>;

/// Starts one of each kind.
async fn started() -> Started {
    let mut started = Vec::new();
    for (what, responses) in kinds().await {
        started.push((what, start(responses).await));
    }
    started
}

/// Returns the addresses behind the first ones, whose turns end well.
fn failing(started: Started, repaired: usize) -> Vec<String> {
    started.into_iter().skip(repaired).map(|(_, url)| url).collect()
}

/// Starts one of each kind that ends with an error; returns their addresses.
pub(crate) async fn servers() -> Vec<String> {
    failing(started().await, REPAIRED)
}

/// What is broken; first what ends well, because nothing is, or because it is left out.
async fn kinds() -> Vec<(&'static str, Responses)> {
    let begun = json!({
        "id": "run-1", "session_id": SESSION, "status": "running", "first_seq": 1,
        "created_at": "2026-01-01T00:00:00Z",
    })
    .to_string();
    let whole = recorded().await;
    let fine = Responses::new(&begun, &whole);
    let at = |kind: &str, agent: &str| {
        let is_it = |event: &Value| {
            event["type"] == kind && event["source"]["agentId"].as_str().unwrap_or("far") == agent
        };
        whole.iter().position(is_it).unwrap()
    };
    let changed = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut events = whole.clone();
        change(&mut events);
        Responses::new(&begun, &events)
    };
    let kid = at("AGENT_START", "kid");
    let number = |event: &Value| event["seq"].as_u64().unwrap();
    let twice = |events: &mut Vec<Value>| {
        events.truncate(kid + 1);
        let mut again = events[kid].clone();
        again["seq"] = json!(number(&again) + 1);
        events.push(again);
    };
    let result = at("TOOL_RESULT_START", "far");
    vec![
        ("nothing", fine.clone()),
        ("a child without a start", changed(&|events| drop(events.remove(kid)))),
        (
            "500",
            Responses { begin: (StatusCode::INTERNAL_SERVER_ERROR, "out of order".into()), ..fine.clone() },
        ),
        ("a run that is none", Responses { begin: (StatusCode::OK, "<html>".into()), ..fine.clone() }),
        ("no such events", Responses { events: (StatusCode::NOT_FOUND, "{}".into()), ..fine.clone() }),
        ("a line that is none", Responses { events: (StatusCode::OK, "<html>\n".into()), ..fine.clone() }),
        ("an event that is none", Responses { events: (StatusCode::OK, "{\"seq\":[]}\n".into()), ..fine }),
        ("no end", changed(&|events| drop(events.pop()))),
        ("no event", changed(&Vec::clear)),
        ("an event twice", changed(&|events| events.insert(3, events[2].clone()))),
        (
            "an unknown parent",
            changed(&|events| events[kid]["source"]["parentSessionId"] = json!("elsewhere")),
        ),
        ("a child that starts twice", changed(&twice)),
        ("a result without a call", changed(&|events| events[result]["toolCallId"] = json!("another"))),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_break_is_told_with_its_reason() {
    insta::assert_snapshot!(told(&started().await, |url| remote("far", url)).await);
}

/// Runs a child at each of these servers, and returns how it ended, a line for each.
async fn told(servers: &[(&str, String)], declare: impl Fn(&str) -> AgentSpec) -> String {
    let told = servers.iter().map(|(what, url)| {
        let main = [Turn::new().spawn("far", "go"), Turn::new().text("All done.")];
        let main = builder("main", ScriptedModel::new().agent("main", main));
        let harness = main.with_subagent(declare(url)).build().unwrap();
        async move {
            let all = events_of(&harness).await;
            let (outcome, why) = child_end(&all, "far");
            let host = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
            let why = why.replace(&host, "URL");
            let ids =
                |word: &str| if word.contains("agent:kid:") { "…".to_owned() } else { word.to_owned() };
            let why: Vec<_> = why.split(' ').map(ids).collect();
            format!("{what}: {} {}", outcome.as_str(), why.join(" "))
        }
    });
    join_all(told).await.join("\n")
}

/// A request to a scripted server.
struct Asked {
    method: Method,
    path: String,
    /// The host and port of the server.
    host: String,
    /// Null without JSON.
    body: Value,
}

/// Starts a server that answers each request by a function; returns its address.
async fn scripted(answer: impl Fn(Asked) -> Response + Clone + Send + Sync + 'static) -> String {
    let handle = move |method: Method, uri: axum::http::Uri, headers: HeaderMap, body: String| {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let body = serde_json::from_str(&body).unwrap_or_default();
        let asked = Asked { method, path: uri.path().to_owned(), host: host.to_owned(), body };
        let answer = answer(asked);
        async move { answer }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().fallback(handle);
    #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    url
}

fn json_of(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// Returns a stream of server-sent events that ends.
fn stream_of(frames: String) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], frames).into_response()
}

/// Returns the events of a run with a child, as a server of Mainstem sends them.
async fn recorded() -> Vec<Value> {
    let run = Act::Delegates.harness().build().unwrap().stream_events("go");
    let events: Vec<_> = run.collect().await;
    let session = events[0].session_id().clone();
    let event = |event: &AgentEvent| event.to_json().replace(session.as_str(), SESSION).parse().unwrap();
    events.iter().map(event).collect()
}

async fn start(responses: Responses) -> String {
    let routes = Router::new()
        .route("/v1/sessions/{session}/runs", post(begin))
        .route("/v1/sessions/{session}/events", get(events))
        .with_state(responses);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/agents/{FAR}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    url
}

async fn begin(State(responses): State<Responses>, Path(session): Path<String>) -> Response {
    let (status, body) = responses.begin;
    (status, [(header::CONTENT_TYPE, "application/json")], body.replace(SESSION, &session)).into_response()
}

async fn events(
    State(responses): State<Responses>,
    Path(session): Path<String>,
    headers: HeaderMap,
) -> Response {
    let (status, body) = responses.events;
    let is_first = headers.get("last-event-id").is_none_or(|last| last == "0");
    if !is_first {
        return StatusCode::NO_CONTENT.into_response();
    }
    let body = body.replace(SESSION, &session);
    (status, [(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}
