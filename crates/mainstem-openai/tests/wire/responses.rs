//! The Responses API against a scripted server: requests, the time of deltas, and every failure.

use std::sync::Arc;

use futures_util::StreamExt;
use mainstem_message::{ContentBlock, Message, Role, ToolCall, Usage};
use mainstem_model::{Model, ModelDelta, ModelOptions, ModelRequest};
use mainstem_openai::{OpenAiExt as _, OpenAiResponses, Responses};
use mainstem_testing::{
    provider::{answer, check, question},
    raw::{Server, Step, events, head, whole},
};

use super::contract::responses::{COMPLETED, TEXT, WHOLE};

fn responses(server: &Server) -> OpenAiResponses {
    OpenAiResponses::new("gpt-test")
        .with_base_url(&format!("{}/v1", server.url()))
        .unwrap()
        .with_api_key("sk-123456789")
}

/// Returns the body of a request.
fn body(request: &str) -> &str {
    request.split_once("\r\n\r\n").unwrap().1
}

#[tokio::test]
async fn the_request_is_what_openai_documents() {
    let mut server = Server::start(vec![events(&[COMPLETED])]).await;
    let model = responses(&server).with_project("p-1").unwrap().with_header("x-title", "Test").unwrap();
    answer(model.stream(question())).await;
    let request = server.request().await.replace(&server.host(), "HOST");
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut head: Vec<_> = head.lines().collect();
    head[1..].sort_unstable();
    insta::assert_snapshot!(head.join("\n"), @"
    POST /v1/responses HTTP/1.1
    accept: text/event-stream, application/json
    authorization: Bearer sk-123456789
    content-length: 183
    content-type: application/json
    host: HOST
    openai-project: p-1
    user-agent: mainstem/0.1.0
    x-title: Test
    ");
    insta::assert_snapshot!(
        body,
        @r#"{"model":"gpt-test","store":false,"include":["reasoning.encrypted_content"],"stream":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hello?"}]}]}"#
    );
}

#[tokio::test]
async fn azure_is_a_base_url() {
    let mut server = Server::start(vec![events(&[COMPLETED])]).await;
    let url = format!("http://{}/openai/v1/", server.host());
    let azure = OpenAiResponses::new("my-gpt").with_base_url(&url).unwrap().with_api_key("sk-azure-1");
    answer(azure.stream(question())).await;
    let request = server.request().await;
    assert!(request.starts_with("POST /openai/v1/responses HTTP") && request.contains("Bearer sk-azure-1"));
}

#[tokio::test]
async fn a_documented_stream_is_read() {
    let bytes = include_bytes!("../fixtures/responses_text.body");
    let headers = "content-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n";
    // In pieces of seven bytes, cut within events and characters.
    let pieces = bytes.chunks(7).map(|piece| Step::Send(piece.to_vec()));
    let script = [head("200 OK", headers)].into_iter().chain(pieces).collect();
    let server = Server::start(vec![script]).await;
    let mut text = String::new();
    let mut last = None;
    let mut stream = responses(&server).stream(question());
    while let Some(delta) = stream.next().await {
        match delta.unwrap() {
            ModelDelta::Text(delta) => text += &delta,
            delta => last = Some(delta),
        }
    }
    assert_eq!(text, "Hi there! Où est-ce 🌍?\n");
    assert!(matches!(last, Some(ModelDelta::Stop(_))), "{last:?}");
}

#[tokio::test]
async fn what_comes_after_the_end_makes_no_difference() {
    check::<Responses>(events(&[TEXT, COMPLETED, "garbage"]), "Hi |stop").await;
    // Other APIs' streams end with `[DONE]`; this one does not.
    let ended = "!transport: HOST ended the connection before its answer was complete";
    check::<Responses>(events(&[TEXT, "[DONE]"]), &format!("Hi {ended}")).await;
}

#[tokio::test]
async fn refusals_are_errors_that_say_what_to_do() {
    check::<Responses>(
        whole("401 Unauthorized", "", r#"{"error":{"message":"Incorrect API key provided: key-123456789.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#),
        "!auth: HOST answered 401 Unauthorized: Incorrect API key provided: [secret]. (check the API key and its rights)",
    )
    .await;
    check::<Responses>(
        whole("404 Not Found", "", r#"{"error":{"message":"The model 'gpt-test' does not exist.","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#),
        "!not_found: HOST answered 404 Not Found: The model 'gpt-test' does not exist. (check the model's name and the base URL)",
    )
    .await;
    check::<Responses>(
        whole("503 Service Unavailable", "", "overloaded"),
        "!overloaded: HOST answered 503 Service Unavailable: overloaded",
    )
    .await;
}

#[tokio::test]
async fn failures_in_mid_stream_are_errors() {
    check::<Responses>(
        events(&[
            TEXT,
            r#"{"type":"error","code":"server_error","message":"no key-123456789","param":null}"#,
            COMPLETED,
        ]),
        "Hi !server_error: HOST broke off its answer: no [secret]",
    )
    .await;
    check::<Responses>(
        events(&[TEXT, r#"{"type":"response.failed","response":{"status":"failed","usage":{"input_tokens":5,"output_tokens":2},"error":{"code":"rate_limit_exceeded","message":"Slow down"}}}"#]),
        &format!("Hi {:?} !rate_limited: HOST broke off its answer: Slow down", ModelDelta::Usage(Usage::new(5, 2))),
    )
    .await;
}

#[tokio::test]
async fn streaming_can_be_switched_off() {
    let script = whole("200 OK", "content-type: application/json\r\n", WHOLE);
    let mut server = Server::start(vec![script]).await;
    let model = responses(&server).without_streaming("too old");
    assert_eq!(answer(model.stream(question())).await, "(too old) Hi ; |stop");
    assert!(server.request().await.contains("\"stream\":false"));
}

/// Returns the bodies that a server saw which refused the first request and accepted the next two,
/// the second by a clone.
async fn taught(error: &str, request: ModelRequest) -> Vec<String> {
    let refused = || whole("400 Bad Request", "content-type: application/json\r\n", error);
    let accepted = || {
        let mut script = events(&[TEXT, COMPLETED]);
        script[0] = head(
            "200 OK",
            "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n",
        );
        script
    };
    let mut server = Server::start(vec![refused(), accepted(), accepted()]).await;
    let model = responses(&server);
    for _ in 0..2 {
        assert_eq!(answer(model.clone().stream(request.clone())).await, "Hi |stop");
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(body(&server.request().await).to_owned());
    }
    seen
}

#[tokio::test]
async fn a_model_that_does_not_reason_is_asked_for_no_reasoning() {
    let error = r#"{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}"#;
    let seen = taught(error, question()).await;
    assert!(seen[0].contains("\"include\"") && !seen[1].contains("\"include\""));
    assert_eq!(seen[1], seen[2], "remembered by clones");
}

#[tokio::test]
async fn an_organization_without_summaries_thinks_all_the_same() {
    let error = r#"{"error":{"message":"Verify first.","type":"invalid_request_error","param":"reasoning.summary","code":"unsupported_value"}}"#;
    let mut options = ModelOptions::new();
    options.effort = Some("low".to_owned());
    let seen = taught(error, ModelRequest { options: Arc::new(options), ..question() }).await;
    assert!(seen[0].contains(r#""reasoning":{"effort":"low","summary":"auto"}"#));
    assert!(seen[1].contains(r#""reasoning":{"effort":"low"}"#));
    assert_eq!(seen[1], seen[2], "remembered by clones");
}

#[tokio::test]
async fn reasoning_of_another_account_is_left_out_for_this_conversation() {
    let error = r#"{"error":{"message":"The encrypted content gAAA could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}"#;
    let kept = r#"{"openai":{"type":"reasoning","id":"rs","encrypted_content":"gAAA","summary":[]}}"#;
    let opaque = serde_json::from_str(kept).unwrap();
    let thought = ContentBlock::Thinking { thinking: String::new(), opaque };
    let call = ContentBlock::ToolCall(ToolCall::new("c", "f", "{}"));
    let turn = Message::new(Role::Assistant, vec![thought, call]);
    let request = ModelRequest { messages: vec![Arc::new(turn)], ..ModelRequest::default() };
    let seen = taught(error, request).await;
    assert!(seen[0].contains("gAAA") && !seen[1].contains("gAAA") && seen[2].contains("gAAA"));
    assert!(seen.iter().all(|body| body.contains(r#""call_id":"c""#)));
}

#[tokio::test]
async fn an_error_without_a_remedy_ends_the_call() {
    let error = r#"{"error":{"message":"include: no","param":"include"}}"#;
    let refused = || whole("400 Bad Request", "", error);
    let server = Server::start(vec![refused(), refused()]).await;
    let answer = answer(responses(&server).stream(question())).await;
    assert!(answer.starts_with("!invalid_request:") && answer.ends_with("include: no"), "{answer}");
}
