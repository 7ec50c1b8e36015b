//! The provider against a scripted server: requests, the time of deltas, and every failure.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;

use std::sync::Arc;

use mainstem_model::{Model, ModelOptions, ModelRequest};
use mainstem_ollama::{Chat, Ollama, OllamaExt as _};
use mainstem_testing::{
    provider::{answer, check, failure, question},
    raw::{Server, Step, chunk, lines, whole},
};
use serde_json::Value;

use self::contract::{DONE, TEXT, WHOLE};

fn ollama(server: &Server) -> Ollama {
    Ollama::new("qwen3").with_base_url(&server.host()).unwrap()
}

/// Checks the deltas of one call without a key when the server plays this script; `HOST` stands for
/// the server.
async fn check_without_key(script: Vec<Step>, expected: &str) {
    let server = Server::start(vec![script]).await;
    let answer = answer(ollama(&server).stream(question())).await;
    assert_eq!(answer.replace(&server.host(), "HOST"), expected);
}

/// Returns a refusal as Ollama writes one.
fn refused(status: &str, error: &str) -> Vec<Step> {
    let body = serde_json::json!({ "error": error }).to_string();
    whole(status, "content-type: application/json; charset=utf-8\r\n", &body)
}

#[tokio::test]
async fn the_request_is_what_ollama_documents() {
    let mut server = Server::start(vec![lines(&[DONE])]).await;
    let ollama = ollama(&server).with_num_ctx(64_000).with_header("x-title", "Test").unwrap();
    answer(ollama.stream(question())).await;
    let request = server.request().await.replace(&server.host(), "HOST");
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut head: Vec<_> = head.lines().collect();
    head[1..].sort_unstable();
    insta::assert_snapshot!(head.join("\n"), @"
    POST /api/chat HTTP/1.1
    accept: text/event-stream, application/json
    content-length: 138
    content-type: application/json
    host: HOST
    user-agent: mainstem/0.1.0
    x-title: Test
    ");
    insta::assert_snapshot!(
        body,
        @r#"{"model":"qwen3","stream":true,"truncate":false,"shift":false,"options":{"num_ctx":64000},"messages":[{"role":"user","content":"Hello?"}]}"#
    );
}

#[tokio::test]
async fn the_key_is_a_bearer_token_and_a_path_is_kept() {
    let mut server = Server::start(vec![lines(&[DONE])]).await;
    let base = format!("http://{}/ollama/", server.host());
    let ollama = ollama(&server).with_base_url(&base).unwrap().with_api_key("key-123456789");
    answer(ollama.stream(question())).await;
    let request = server.request().await;
    assert!(request.starts_with("POST /ollama/api/chat HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nauthorization: Bearer key-123456789\r\n"), "{request}");
}

#[tokio::test]
async fn a_stream_ends_when_it_is_done() {
    check::<Chat>(lines(&[TEXT, DONE]), "Hi |stop").await;
    check::<Chat>(lines(&[TEXT, "", DONE, DONE, "garbage"]), "Hi |stop").await;
    // Data after the end makes no difference, and neither does its absence.
    let mut silent = lines(&[TEXT, DONE]);
    silent.insert(3, Step::AwaitClose);
    check::<Chat>(silent, "Hi |stop").await;
    let mut cut = lines(&[TEXT, DONE]);
    cut.pop();
    check::<Chat>(cut, "Hi |stop").await;
}

/// Returns a stream of one line, and then a part of another one, in an HTTP chunk that is complete.
fn cut(rest: &[u8]) -> Vec<Step> {
    let mut script = lines(&[TEXT]);
    script.pop();
    script.push(chunk(rest));
    script
}

#[tokio::test]
async fn a_line_that_is_cut_is_no_line() {
    let cut_off =
        "!transport: HOST was cut off before its answer was complete: unexpected EOF during chunk size line";
    // Within a delta, a character, and the JSON of a call.
    check::<Chat>(cut(br#"{"message":{"content":"Hel"#), &format!("Hi {cut_off}")).await;
    check::<Chat>(cut(b"{\"message\":{\"content\":\"H\xc3"), &format!("Hi {cut_off}")).await;
    let call = br#"{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"city":"To"#;
    check::<Chat>(cut(call), &format!("Hi {cut_off}")).await;
    // With a proper end of the body, without the end of the response.
    let ended = "!transport: HOST ended the connection before its answer was complete";
    check::<Chat>(lines(&[TEXT, r#"{"message":{"content":"Hel"#]), &format!("Hi {ended}")).await;
}

#[tokio::test]
async fn a_model_that_is_not_there_is_to_be_pulled() {
    check_without_key(
        refused("404 Not Found", "model 'qwen3' not found"),
        "!not_found: HOST answered 404 Not Found: model 'qwen3' not found; run `ollama pull qwen3` (check the model's name and the base URL)",
    )
    .await;
    let missing = refused("404 Not Found", "model \"qwen3\" not found, try pulling it first");
    let error = failure::<Chat>(missing).await;
    assert!(error.to_string().contains("; run `ollama pull m`"), "{error}");
    assert!(!error.is_retryable());
    // Another server, or another path.
    check_without_key(
        whole("404 Not Found", "content-type: text/plain\r\n", "404 page not found"),
        "!not_found: HOST answered 404 Not Found: 404 page not found (check the model's name and the base URL)",
    )
    .await;
}

#[tokio::test]
async fn who_is_not_signed_in_is_told_how() {
    let body = r#"{"error":"unauthorized","signin_url":"https://ollama.com/connect?name=h&key=k"}"#;
    let script = || whole("401 Unauthorized", "content-type: application/json\r\n", body);
    check_without_key(
        script(),
        "!auth: HOST answered 401 Unauthorized: unauthorized; run `ollama signin` (check the API key and its rights)",
    )
    .await;
    check::<Chat>(
        script(),
        "!auth: HOST answered 401 Unauthorized: unauthorized (check the API key and its rights)",
    )
    .await;
}

#[tokio::test]
async fn ollamas_refusals_are_read() {
    check::<Chat>(
        refused("400 Bad Request", "\"llama3.2\" does not support thinking"),
        "!invalid_request: HOST answered 400 Bad Request: \"llama3.2\" does not support thinking",
    )
    .await;
    check::<Chat>(
        refused("400 Bad Request", "the input length exceeds the context length"),
        "!context_overflow: HOST answered 400 Bad Request: the input length exceeds the context length",
    )
    .await;
    check::<Chat>(
        refused("403 Forbidden", "this model requires a subscription, upgrade for access: https://ollama.com/upgrade"),
        "!auth: HOST answered 403 Forbidden: this model requires a subscription, upgrade for access: https://ollama.com/upgrade (check the API key and its rights)",
    )
    .await;
    check::<Chat>(
        refused("500 Internal Server Error", "llama runner process has terminated: exit status 2"),
        "!server_error: HOST answered 500 Internal Server Error: llama runner process has terminated: exit status 2",
    )
    .await;
    check::<Chat>(
        refused("503 Service Unavailable", "server busy, please try again.  maximum pending requests exceeded"),
        "!overloaded: HOST answered 503 Service Unavailable: server busy, please try again. maximum pending requests exceeded",
    )
    .await;
}

#[tokio::test]
async fn streaming_can_be_switched_off() {
    let mut server = Server::start(vec![whole("200 OK", "content-type: application/json\r\n", WHOLE)]).await;
    let mut options = ModelOptions::new();
    options.extra.insert("stream".into(), Value::Bool(false));
    let request = ModelRequest { options: Arc::new(options), ..question() };
    assert_eq!(answer(ollama(&server).stream(request)).await, "(`stream` is set to false) Hi |stop");
    assert!(server.request().await.contains("\"stream\":false"));
}
