//! The provider against a scripted server: requests, the time of deltas, and every failure.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use mainstem_anthropic::{Anthropic, Messages};
use mainstem_message::{StopReason, Usage};
use mainstem_model::{ErrorKind, Model, ModelDelta, ModelOptions, ModelRequest, Retry, RetryPolicy};
use mainstem_testing::{
    provider::{answer, check, failure, question},
    raw::{Server, Step, head, named_events as events, whole},
};

use self::contract::{END, STOP, TEXT};

fn anthropic(server: &Server) -> Anthropic {
    Anthropic::new("claude-test").with_base_url(&server.url()).unwrap().with_api_key("sk-ant-123456789")
}

/// Returns a refusal in Anthropic's words.
fn refused(status: &str, headers: &str, kind: &str, message: &str) -> Vec<Step> {
    let body = format!(
        r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}}"#
    );
    whole(status, &format!("content-type: application/json\r\n{headers}"), &body)
}

/// Returns the head of a request, its lines in order.
fn head_of(request: &str, server: &Server) -> String {
    let request = request.replace(&server.host(), "HOST");
    let mut head: Vec<_> = request.split("\r\n\r\n").next().unwrap().lines().collect();
    head[1..].sort_unstable();
    head.join("\n")
}

#[tokio::test]
async fn the_request_is_what_anthropic_documents() {
    let mut server = Server::start(vec![events(&[STOP])]).await;
    let anthropic =
        anthropic(&server).with_header("anthropic-beta", "interleaved-thinking-2025-05-14").unwrap();
    answer(anthropic.stream(question())).await;
    let request = server.request().await;
    insta::assert_snapshot!(head_of(&request, &server), @"
    POST /v1/messages HTTP/1.1
    accept: text/event-stream, application/json
    anthropic-beta: interleaved-thinking-2025-05-14
    anthropic-version: 2023-06-01
    content-length: 129
    content-type: application/json
    host: HOST
    user-agent: mainstem/0.1.0
    x-api-key: sk-ant-123456789
    ");
    insta::assert_snapshot!(
        request.split("\r\n\r\n").nth(1).unwrap(),
        @r#"{"model":"claude-test","max_tokens":32000,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Hello?"}]}]}"#
    );
}

#[tokio::test]
async fn a_token_is_a_bearer() {
    let mut server = Server::start(vec![events(&[STOP])]).await;
    answer(anthropic(&server).with_auth_token("token-123").stream(question())).await;
    let request = server.request().await;
    assert!(
        request.contains("\r\nauthorization: Bearer token-123\r\n") && !request.contains("x-api-key"),
        "{request}"
    );
}

#[tokio::test]
async fn a_stream_ends_with_a_stop_reason_or_message_stop() {
    check::<Messages>(events(&[TEXT, END, STOP]), "Hi |stop").await;
    check::<Messages>(events(&[TEXT, END]), "Hi |stop").await;
    check::<Messages>(events(&[TEXT, STOP]), "Hi |stop").await;
    check::<Messages>(events(&[TEXT, END, STOP, STOP, "garbage"]), "Hi |stop").await;
    // Data after the end makes no difference, and neither does its absence.
    let mut silent = events(&[TEXT, END, STOP]);
    silent.insert(4, Step::AwaitClose);
    check::<Messages>(silent, "Hi |stop").await;
    let mut cut = events(&[TEXT, END]);
    cut.pop();
    check::<Messages>(cut, "Hi |stop").await;
}

#[tokio::test]
async fn a_documented_stream_arrives() {
    let body = include_str!("../fixtures/tool_use.body");
    let script = whole("200 OK", "content-type: text/event-stream; charset=utf-8\r\n", body);
    let server = Server::start(vec![script]).await;
    let deltas: Vec<_> = anthropic(&server).stream(question()).map(Result::unwrap).collect().await;
    let arguments: String = deltas
        .iter()
        .filter_map(|delta| match delta {
            ModelDelta::CallArguments { delta, .. } => Some(delta.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(arguments, r#"{"location": "San Francisco, CA"}"#);
    let (last, before) = deltas.split_last().unwrap();
    assert_eq!(*last, ModelDelta::Stop(StopReason::ToolCalls));
    assert_eq!(before.last(), Some(&ModelDelta::Usage(Usage::new(472, 89))));
}

#[tokio::test]
async fn what_an_answer_has_used_counts_if_it_is_cut_off() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":472,"cache_read_input_tokens":28,"output_tokens":1}}}"#;
    let more = r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":9}}"#;
    let usage = |output| {
        let mut usage = Usage::new(500, output);
        usage.cache_read_tokens = 28;
        format!("{:?}", ModelDelta::Usage(usage))
    };
    let ended = "!transport: HOST ended the connection before its answer was complete";
    check::<Messages>(events(&[start, TEXT]), &format!("{} Hi {ended}", usage(1))).await;
    check::<Messages>(events(&[start, TEXT, more]), &format!("{} Hi {} {ended}", usage(1), usage(9))).await;
    // A server that is overloaded is asked again: the tokens of the prompt are no part of an
    // answer.
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let mut failed = events(&[start, overloaded]);
    failed[0] = head(
        "200 OK",
        "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n",
    );
    let server = Server::start(vec![failed, events(&[TEXT, END, STOP])]).await;
    let mut policy = RetryPolicy::default();
    (policy.min_wait, policy.jitter) = (Duration::from_millis(1), false);
    let again = Retry::with_policy(anthropic(&server), policy);
    let said = format!("{} (again after 1, 1ms) Hi |stop", usage(1));
    assert_eq!(answer(again.stream(question())).await, said);
}

#[tokio::test]
async fn every_refusal_has_its_kind() {
    let check = async |status: &str, kind: &str, expected: ErrorKind, retryable: bool| {
        let error = failure::<Messages>(refused(status, "", kind, "No.")).await;
        assert_eq!((error.kind(), error.is_retryable()), (expected, retryable), "{status}");
        let number = status.split(' ').next().unwrap();
        assert_eq!(error.status(), number.parse().ok());
        assert!(error.to_string().contains(&format!(" answered {number}")), "{error}");
        assert!(error.to_string().contains(": No."), "{error}");
    };
    // https://platform.claude.com/docs/en/api/errors
    check("400 Bad Request", "invalid_request_error", ErrorKind::InvalidRequest, false).await;
    check("401 Unauthorized", "authentication_error", ErrorKind::Auth, false).await;
    check("402 Payment Required", "billing_error", ErrorKind::QuotaExceeded, false).await;
    check("403 Forbidden", "permission_error", ErrorKind::Auth, false).await;
    check("404 Not Found", "not_found_error", ErrorKind::NotFound, false).await;
    check("413 Payload Too Large", "request_too_large", ErrorKind::ContextOverflow, false).await;
    check("429 Too Many Requests", "rate_limit_error", ErrorKind::RateLimited, true).await;
    check("500 Internal Server Error", "api_error", ErrorKind::Server, true).await;
    check("504 Gateway Timeout", "timeout_error", ErrorKind::Timeout, true).await;
    check("529 Site Is Overloaded", "overloaded_error", ErrorKind::Overloaded, true).await;
    let long = failure::<Messages>(refused(
        "400 Bad Request",
        "",
        "invalid_request_error",
        "prompt is too long: 9 tokens > 8 maximum",
    ))
    .await;
    assert_eq!(long.kind(), ErrorKind::ContextOverflow);
}

#[tokio::test]
async fn an_overload_is_asked_again() {
    let overloaded =
        refused("529 Site Is Overloaded", "retry-after: 0\r\n", "overloaded_error", "Overloaded");
    let server = Server::start(vec![overloaded, events(&[TEXT, END, STOP])]).await;
    let answer = answer(Retry::new(anthropic(&server)).stream(question())).await;
    assert_eq!(answer, "(again after 1, 0ns) Hi |stop");
}

/// Returns a question with a temperature.
fn warm() -> ModelRequest {
    let mut options = ModelOptions::new();
    options.temperature = Some(0.2);
    ModelRequest { options: Arc::new(options), ..question() }
}

#[tokio::test]
async fn a_model_that_refuses_a_temperature_is_asked_without() {
    let deprecated = refused(
        "400 Bad Request",
        "",
        "invalid_request_error",
        "`temperature` is deprecated for this model.",
    );
    let mut accepted = events(&[TEXT, STOP]);
    accepted[0] = head(
        "200 OK",
        "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n",
    );
    let mut server = Server::start(vec![deprecated, accepted.clone(), accepted]).await;
    let anthropic = anthropic(&server);
    for _ in 0..2 {
        assert_eq!(answer(anthropic.clone().stream(warm())).await, "Hi |stop");
    }
    let with = [server.request().await, server.request().await, server.request().await]
        .map(|request| request.contains("temperature"));
    assert_eq!(with, [true, false, false], "remembered by clones");
}

#[tokio::test]
async fn a_complaint_that_was_heeded_is_the_answer_if_it_comes_again() {
    let refused = || refused("400 Bad Request", "", "invalid_request_error", "`temperature` is deprecated");
    let server = Server::start(vec![refused(), refused()]).await;
    let answer = answer(anthropic(&server).stream(warm())).await;
    assert!(answer.starts_with("!invalid_request:") && answer.ends_with("is deprecated"), "{answer}");
}

#[tokio::test]
async fn a_complaint_has_its_kind_and_the_version_is_no_secret() {
    check::<Messages>(
        refused("400 Bad Request", "", "invalid_request_error", "2023-06-01 is not a valid version"),
        "!invalid_request: HOST answered 400 Bad Request: 2023-06-01 is not a valid version",
    )
    .await;
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    check::<Messages>(
        events(&[TEXT, overloaded, STOP]),
        "Hi !overloaded: HOST broke off its answer: Overloaded",
    )
    .await;
    check::<Messages>(
        whole("200 OK", "content-type: application/json\r\n", overloaded),
        "!overloaded: HOST broke off its answer: Overloaded",
    )
    .await;
    check::<Messages>(
        events(&[r#"{"type":"ping"}"#]),
        "!transport: HOST ended the connection before its answer was complete",
    )
    .await;
}
