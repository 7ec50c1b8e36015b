//! Servers that break LangGraph's API.

use std::sync::Arc;

use axum::{
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::{prelude::AgentSpec, spec::Protocol};
use mainstem_testing::remote::FAR;
use serde_json::{Value, json};

use super::{Asked, Started, failing, json_of, scripted, stream_of, told};
use crate::chain::remote;

/// How many of the kinds end well.
const REPAIRED: usize = 4;

/// A request for what.
#[derive(Clone, Copy, PartialEq)]
enum For {
    /// A run, which begins.
    Begin,
    /// The stream of a run, again.
    Stream,
    Run,
    Runs,
    State,
}

type Answer = Arc<dyn Fn(For) -> Response + Send + Sync>;

struct Kind {
    what: &'static str,
    answer: Answer,
}

/// Returns the answer of a request that begins a run, with its id.
fn begun(frames: &str) -> Response {
    let mut response = stream_of(frames.to_owned());
    let place = HeaderValue::from_static("/threads/t/runs/r");
    response.headers_mut().insert(header::CONTENT_LOCATION, place);
    response
}

fn frame(event: &str, data: &Value) -> String {
    format!("event: {event}\ndata: {data}\n\n")
}

fn said(message: Value) -> String {
    frame("messages", &json!([message, {}]))
}

/// Answers for a run of this stream that has ended with this status.
fn ended(frames: String, status: &'static str) -> impl Fn(For) -> Response + Send + Sync {
    move |what| match what {
        For::Begin => begun(&frames),
        For::Stream => stream_of(String::new()),
        For::Run => json_of(&json!({ "run_id": "r", "status": status })),
        For::Runs => json_of(&json!([])),
        For::State => json_of(&json!({ "values": { "messages": [] }, "next": [], "tasks": [] })),
    }
}

/// Answers as [`ended`], but for one request.
fn but(what: For, answer: impl Fn() -> Response + Send + Sync + 'static) -> Answer {
    let others = ended(frame("metadata", &json!({ "run_id": "r" })), "success");
    Arc::new(move |asked| if asked == what { answer() } else { others(asked) })
}

fn kinds() -> Vec<Kind> {
    let kind = |what, answer| Kind { what, answer };
    let of = |frames: &[String]| -> Answer { Arc::new(ended(frames.concat(), "success")) };
    let text = said(json!({ "type": "AIMessageChunk", "id": "m", "content": "Done." }));
    let result = said(json!({ "type": "tool", "id": "x", "tool_call_id": "none", "content": "?" }));
    let deep = (0..300).map(|n| format!("a:{n}")).collect::<Vec<_>>().join("|");
    let below = |namespace: &str| {
        let message = json!([{ "type": "AIMessageChunk", "id": namespace, "content": "x" }, {}]);
        frame(&format!("messages|{namespace}"), &message)
    };
    let many: String = (0..400).map(|n| below(&format!("n{n}:{n}"))).collect();
    let html = || json_of(&json!("<html>"));
    vec![
        kind("nothing", of(std::slice::from_ref(&text))),
        kind("a result without a call", of(&[result, text.clone()])),
        kind(
            "a frame that is too large, which the state has",
            of(&[format!("data: {}\n\n", "x".repeat(5 << 20))]),
        ),
        kind("400 graphs", of(&[many, text.clone()])),
        kind("300 levels", of(&[below(&deep), text])),
        kind("500", but(For::Begin, || (StatusCode::INTERNAL_SERVER_ERROR, "out of order").into_response())),
        kind("no stream and no run", but(For::Begin, html)),
        kind("a run without an id", but(For::Begin, || stream_of(String::new()))),
        kind("runs that are none", {
            let begin = but(For::Begin, || stream_of(String::new()));
            Arc::new(move |asked| if asked == For::Runs { html() } else { begin(asked) })
        }),
        kind("a frame that is none", of(&["event: messages\ndata: <html>\n\n".into()])),
        kind("a message that is none", of(&[frame("messages", &json!({ "type": "ai" }))])),
        kind(
            "a call whose index is none",
            of(&[said(json!({
            "type": "AIMessageChunk", "id": "m", "content": 7, "tool_call_chunks": [{ "args": 7 }] }))]),
        ),
        kind("an event with a long name", of(&[frame(&"x".repeat(2_000), &json!(1))])),
        kind("a run that is none", but(For::Run, html)),
        kind("a state that is none", but(For::State, html)),
        kind("a failure without a reason", Arc::new(ended(String::new(), "error"))),
        kind("a failure that is none", of(&[frame("error", &json!(7))])),
    ]
}

async fn start(kind: Kind) -> String {
    let answer = kind.answer;
    let url = scripted(move |Asked { method, path, .. }| {
        let end = path.rsplit('/').next().unwrap_or_default();
        match (method, end) {
            (Method::POST, "stream") => answer(For::Begin),
            (Method::GET, "stream") => answer(For::Stream),
            (Method::GET, "runs") => answer(For::Runs),
            (Method::GET, "state") => answer(For::State),
            (Method::GET, "r") => answer(For::Run),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    format!("{url}/assistants/{FAR}")
}

pub(crate) fn declared(url: &str) -> AgentSpec {
    remote(FAR, url).with_protocol(Protocol::LangGraph)
}

/// Starts one of each kind.
async fn started() -> Started {
    let mut started = Vec::new();
    for kind in kinds() {
        started.push((kind.what, start(kind).await));
    }
    started
}

/// Starts one of each kind that ends with an error; returns their addresses.
pub(crate) async fn servers() -> Vec<String> {
    failing(started().await, REPAIRED)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_break_of_langgraphs_api_is_told_with_its_reason() {
    insta::assert_snapshot!(told(&started().await, declared).await);
}
