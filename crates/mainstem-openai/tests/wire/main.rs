//! The provider against a scripted server: requests, the time of deltas, and every failure.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;
mod responses;

use mainstem_model::{Model, ModelRequest};
use mainstem_openai::{ChatCompletions, OpenAi, OpenAiExt as _, azure};
use mainstem_testing::{
    provider::{answer, check, question},
    raw::{Server, Step, events, head, whole},
};

use self::contract::{STOP, TEXT};

fn openai(server: &Server) -> OpenAi {
    OpenAi::new("gpt-test")
        .with_base_url(&format!("{}/v1", server.url()))
        .unwrap()
        .with_api_key("sk-123456789")
}

#[tokio::test]
async fn the_request_is_what_openai_documents() {
    let mut server = Server::start(vec![events(&[STOP])]).await;
    let openai = openai(&server).with_organization("org-1").unwrap().with_header("x-title", "Test").unwrap();
    answer(openai.stream(question())).await;
    let request = server.request().await.replace(&server.host(), "HOST");
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut head: Vec<_> = head.lines().collect();
    head[1..].sort_unstable();
    insta::assert_snapshot!(head.join("\n"), @"
    POST /v1/chat/completions HTTP/1.1
    accept: text/event-stream, application/json
    authorization: Bearer sk-123456789
    content-length: 122
    content-type: application/json
    host: HOST
    openai-organization: org-1
    user-agent: mainstem/0.1.0
    x-title: Test
    ");
    insta::assert_snapshot!(
        body,
        @r#"{"model":"gpt-test","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hello?"}]}"#
    );
}

#[tokio::test]
async fn azure_has_its_own_path_and_header() {
    let mut server = Server::start(vec![events(&[STOP])]).await;
    let model = azure(&format!("http://{}", server.host()), "my-gpt", "2024-10-21").unwrap();
    answer(model.with_api_key("sk-azure").stream(question())).await;
    let request = server.request().await;
    assert!(
        request.starts_with("POST /openai/deployments/my-gpt/chat/completions?api-version=2024-10-21 HTTP")
    );
    assert!(request.contains("\r\napi-key: sk-azure\r\n") && !request.contains("authorization"), "{request}");
}

#[tokio::test]
async fn a_stream_ends_with_finish_reason_or_done() {
    check::<ChatCompletions>(events(&[TEXT, STOP, "[DONE]"]), "Hi |stop").await;
    check::<ChatCompletions>(events(&[TEXT, STOP]), "Hi |stop").await;
    check::<ChatCompletions>(events(&[TEXT, "[DONE]"]), "Hi |stop").await;
    check::<ChatCompletions>(events(&[TEXT, STOP, "[DONE]", "[DONE]", "garbage"]), "Hi |stop").await;
    // Data after the end makes no difference, and neither does its absence.
    let mut silent = events(&[TEXT, STOP, "[DONE]"]);
    silent.insert(4, Step::AwaitClose);
    check::<ChatCompletions>(silent, "Hi |stop").await;
    let mut cut = events(&[TEXT, STOP]);
    cut.pop();
    check::<ChatCompletions>(cut, "Hi |stop").await;
}

/// Checks a server that refuses a first request, then accepts; returns the requests that it saw.
async fn taught(error: &str, accepted: Vec<Step>, request: ModelRequest, expected: &str) -> Vec<String> {
    let refused = whole("400 Bad Request", "content-type: application/json\r\n", error);
    let mut server = Server::start(vec![refused, accepted.clone(), accepted]).await;
    let openai = openai(&server);
    let mut seen = Vec::new();
    for _ in 0..2 {
        assert_eq!(answer(openai.clone().stream(request.clone())).await, expected);
    }
    for _ in 0..3 {
        seen.push(server.request().await);
    }
    assert_eq!(seen[1].split("\r\n\r\n").nth(1), seen[2].split("\r\n\r\n").nth(1), "remembered by clones");
    seen
}

#[tokio::test]
async fn a_server_that_knows_no_stream_options_is_asked_without() {
    let error = r#"{"error":{"message":"Unrecognized request argument supplied: stream_options"}}"#;
    let accepted = |mut script: Vec<Step>| {
        script[0] = head(
            "200 OK",
            "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n",
        );
        script
    };
    let seen = taught(error, accepted(events(&[TEXT, STOP])), question(), "Hi |stop").await;
    assert!(seen[0].contains("stream_options") && !seen[1].contains("stream_options"));
    assert!(seen[1].contains("\"stream\":true"));
}

#[tokio::test]
async fn a_model_that_may_not_stream_answers_in_one_piece() {
    let error = r#"{"error":{"message":"Verify first.","type":"invalid_request_error","param":"stream","code":"unsupported_value"}}"#;
    let body = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":null}"#;
    let accepted = whole("200 OK", "content-type: application/json\r\n", body);
    let seen = taught(error, accepted, question(), "(Verify first.) Hi |stop").await;
    assert!(seen[0].contains("\"stream\":true") && seen[1].contains("\"stream\":false"));
}

#[tokio::test]
async fn an_error_without_a_remedy_ends_the_call() {
    let error = r#"{"error":{"message":"stream_options: no","param":"stream_options"}}"#;
    let refused = || whole("400 Bad Request", "", error);
    let server = Server::start(vec![refused(), refused()]).await;
    let answer = answer(openai(&server).stream(question())).await;
    assert!(answer.starts_with("!invalid_request:") && answer.ends_with("stream_options: no"), "{answer}");
}

#[tokio::test]
async fn streaming_can_be_switched_off() {
    let body = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"length"}]}"#;
    let mut server = Server::start(vec![whole("200 OK", "content-type: application/json\r\n", body)]).await;
    let openai = openai(&server).without_streaming("too old");
    assert_eq!(answer(openai.stream(question())).await, "(too old) Hi |length");
    assert!(server.request().await.contains("\"stream\":false"));
}

#[tokio::test]
async fn lines_of_another_api_are_quoted() {
    let ndjson = "{\"message\":{\"content\":\"a\"},\"done\":false}\n{\"done\":true}";
    check::<ChatCompletions>(
        whole("200 OK", "content-type: application/json\r\n", ndjson),
        "!protocol: HOST sent what is no chat completion: trailing characters at line 2 column 1: {\"message\":{\"content\":\"a\"},\"done\":false} {\"done\":true}",
    )
    .await;
    check::<ChatCompletions>(
        events(&[r#"{"error":"key-123456789"}"#]),
        "!server_error: HOST broke off its answer: [secret]",
    )
    .await;
}
