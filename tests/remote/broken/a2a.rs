//! Servers that break Agent2Agent, with and without our extension.

use std::sync::Arc;

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use mainstem::{prelude::AgentSpec, spec::Protocol};
use mainstem_testing::remote::FAR;
use serde_json::{Value, json};

use super::{Asked, Started, failing, json_of, scripted, stream_of, told};
use crate::chain::remote;

/// The name of our extension in a card.
const EXTENSION: &str = "https://github.com/mainstem-rs/mainstem/a2a/events/v1";

/// How many of the kinds end well.
const REPAIRED: usize = 3;

type Answer = Arc<dyn Fn(&str) -> Response + Send + Sync>;

/// A card, with the host of its interfaces to fill in, and the answers to operations.
struct Kind {
    what: &'static str,
    card: Value,
    answer: Answer,
}

fn kind(what: &'static str, card: Value, answer: impl Fn(&str) -> Response + Send + Sync + 'static) -> Kind {
    Kind { what, card, answer: Arc::new(answer) }
}

fn card(extensions: Value) -> Value {
    json!({
        "name": FAR, "version": "1", "description": "",
        "supportedInterfaces": [{
            "url": "http://HOST/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0",
        }],
        "capabilities": { "streaming": true, "extensions": extensions },
        "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
    })
}

fn result(result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": result })
}

fn frames(updates: &[Value]) -> Response {
    stream_of(updates.iter().map(|update| format!("data: {}\n\n", result(update))).collect())
}

fn task(id: &str) -> Value {
    json!({ "id": id, "contextId": "c", "status": { "state": "TASK_STATE_WORKING" } })
}

fn artifact(task: &str, id: &str, text: &str) -> Value {
    json!({ "artifactUpdate": {
        "taskId": task, "contextId": "c", "artifact": { "artifactId": id, "parts": [{ "text": text }] } } })
}

fn completed(task: &str) -> Value {
    json!({ "statusUpdate": {
        "taskId": task, "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED" } } })
}

/// An event under our extension.
fn event(seq: u64, rest: Value) -> Value {
    let mut event = json!({
        "id": format!("s:{seq}"), "seq": seq, "createdAt": "2026-01-01T00:00:00Z", "sessionId": "s",
        "runId": "run-1", "replyId": "reply-1",
    });
    event.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    json!({ "statusUpdate": {
        "taskId": "t", "contextId": "c", "status": { "state": "TASK_STATE_WORKING" },
        "metadata": { EXTENSION: event } } })
}

fn fixed(updates: Vec<Value>) -> impl Fn(&str) -> Response {
    move |_: &str| frames(&updates)
}

fn begun() -> Value {
    json!({ "task": task("t") })
}

fn kinds() -> Vec<Kind> {
    let mut kinds = without_extension();
    kinds.extend(with_extension());
    kinds
}

fn without_extension() -> Vec<Kind> {
    let plain = || card(json!([]));
    let many = (0..5_000).map(|n| artifact("t", &n.to_string(), "x"));
    let (mut elsewhere, mut polled) = (plain(), plain());
    polled["capabilities"]["streaming"] = json!(false);
    elsewhere["supportedInterfaces"][0]["url"] = json!("http://127.0.0.1:1/rpc");
    // The state of a task, or the stream that has it, as often as they are asked for.
    let again = |operation: &str| match operation {
        "GetTask" => json_of(&result(&task("t"))),
        _ => frames(&[json!({ "task": task("t") })]),
    };
    let forgotten = |operation: &str| match operation {
        "SendStreamingMessage" => frames(&[json!({ "task": task("t") })]),
        _ => json_of(&json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32001, "message": "gone" } })),
    };
    vec![
        kind("nothing", plain(), fixed(vec![begun(), artifact("t", "a", "Done."), completed("t")])),
        kind(
            "an update after the end",
            plain(),
            fixed(vec![begun(), artifact("t", "a", "Done."), completed("t"), artifact("t", "b", "Late.")]),
        ),
        kind("no answer", plain(), fixed(vec![begun(), completed("t")])),
        kind("no card", Value::Null, fixed(vec![])),
        kind("a card that is none", json!("<html>"), fixed(vec![])),
        kind("an interface elsewhere", elsewhere, fixed(vec![])),
        kind("500", plain(), |_| (StatusCode::INTERNAL_SERVER_ERROR, "out of order").into_response()),
        kind("an error that is none", plain(), |_| json_of(&json!({ "error": "no" }))),
        kind("no result", plain(), |_| json_of(&json!({ "jsonrpc": "2.0", "id": 1 }))),
        kind("a frame that is none", plain(), |_| stream_of("data: <html>\n\n".into())),
        kind("an update that is none", plain(), fixed(vec![begun(), json!({ "news": 1 })])),
        kind("a frame that is too large", plain(), |_| {
            stream_of(format!("data: {}\n\n", "x".repeat(5 << 20)))
        }),
        kind("no task", plain(), fixed(vec![])),
        kind("an update of another task", plain(), fixed(vec![begun(), artifact("u", "a", "Theirs.")])),
        kind("the end of another task", plain(), fixed(vec![begun(), completed("u")])),
        kind("another task", plain(), fixed(vec![begun(), json!({ "task": task("u") })])),
        kind("another task when it is polled", polled, |operation: &str| match operation {
            "SendMessage" => json_of(&result(&json!({ "task": task("t") }))),
            _ => json_of(&result(&task("u"))),
        }),
        kind("too many artifacts", plain(), fixed([begun()].into_iter().chain(many).collect())),
        kind("a stream that ends again and again", plain(), again),
        kind("a task that is forgotten", plain(), forgotten),
        kind("one status again and again", plain(), {
            let status = json!({ "statusUpdate": {
                "taskId": "t", "contextId": "c", "status": { "state": "TASK_STATE_WORKING" } } });
            fixed(vec![begun(), status])
        }),
    ]
}

fn with_extension() -> Vec<Kind> {
    let ours = || card(json!([{ "uri": EXTENSION }]));
    let start = || event(1, json!({ "type": "AGENT_START", "name": FAR, "role": "assistant", "input": [] }));
    vec![
        kind("an event that is none", ours(), fixed(vec![begun(), event(1, json!({ "seq": [] }))])),
        kind("an event without a task", ours(), fixed(vec![start()])),
        kind(
            "a start within a start",
            ours(),
            fixed(vec![
                begun(),
                start(),
                event(2, json!({ "type": "AGENT_START", "name": "x", "role": "assistant", "input": [] })),
            ]),
        ),
        kind("events of another task", ours(), {
            let mut of_other = start();
            of_other["statusUpdate"]["taskId"] = json!("u");
            fixed(vec![begun(), of_other])
        }),
        kind("one answer again and again", ours(), |_: &str| json_of(&result(&json!({ "task": task("t") })))),
        kind("events that end again and again", ours(), fixed(vec![begun(), start()])),
    ]
}

async fn start(kind: Kind) -> String {
    let Kind { card, answer, .. } = kind;
    scripted(move |Asked { path, host, body, .. }| match &*path {
        "/rpc" => answer(body["method"].as_str().unwrap_or_default()),
        "/.well-known/agent-card.json" if !card.is_null() => {
            json_of(&card.to_string().replace("HOST", &host).parse().unwrap())
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    })
    .await
}

pub(crate) fn declared(url: &str) -> AgentSpec {
    remote(FAR, url).with_protocol(Protocol::A2a)
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
async fn each_break_of_a2a_is_told_with_its_reason() {
    insta::assert_snapshot!(told(&started().await, declared).await);
}
