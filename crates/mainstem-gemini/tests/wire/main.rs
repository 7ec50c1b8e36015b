//! The provider against a scripted server: requests, the time of deltas, and every failure.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use mainstem_gemini::{Gemini, GenerateContent};
use mainstem_message::{ContentBlock, Message, Opaque, Role, ToolCall, ToolResult, ToolState, Usage};
use mainstem_model::{ErrorKind, Model, ModelDelta, ModelRequest, Retry, RetryPolicy};
use mainstem_testing::{
    provider::{answer, check, failure, question},
    raw::{Server, Step, events, head, whole},
};

use self::contract::{CALL, STOP, TEXT};

fn gemini(server: &Server) -> Gemini {
    Gemini::new("gemini-test").with_base_url(&server.url()).unwrap().with_api_key("AIza-123456789")
}

/// Returns a response of one piece, as Google sends its errors.
fn refused(status: &str, body: &str) -> Vec<Step> {
    whole(status, "content-type: application/json; charset=UTF-8\r\n", body)
}

#[tokio::test]
async fn the_request_is_what_google_documents() {
    let mut server = Server::start(vec![events(&[STOP])]).await;
    let gemini = gemini(&server).with_header("x-goog-user-project", "mine").unwrap();
    answer(gemini.stream(question())).await;
    let request = server.request().await.replace(&server.host(), "HOST");
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut head: Vec<_> = head.lines().collect();
    head[1..].sort_unstable();
    insta::assert_snapshot!(head.join("\n"), @"
    POST /v1beta/models/gemini-test:streamGenerateContent?alt=sse HTTP/1.1
    accept: text/event-stream, application/json
    content-length: 58
    content-type: application/json
    host: HOST
    user-agent: mainstem/0.1.0
    x-goog-api-key: AIza-123456789
    x-goog-user-project: mine
    ");
    insta::assert_snapshot!(body, @r#"{"contents":[{"role":"user","parts":[{"text":"Hello?"}]}]}"#);
}

#[tokio::test]
async fn vertex_ai_is_an_address_and_a_token() {
    let mut server = Server::start(vec![events(&[STOP])]).await;
    let base = format!("{}/v1/projects/p/locations/global/publishers/google", server.url());
    let vertex = Gemini::new("gemini-test").with_base_url(&base).unwrap();
    let vertex = vertex.with_header("authorization", "Bearer ya29.token").unwrap();
    assert_eq!(answer(vertex.stream(question())).await, "|stop");
    let request = server.request().await;
    let path =
        "/v1/projects/p/locations/global/publishers/google/models/gemini-test:streamGenerateContent?alt=sse";
    assert!(request.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{request}");
    assert!(
        request.contains("\r\nauthorization: Bearer ya29.token\r\n") && !request.contains("x-goog-api-key")
    );
    assert!(!format!("{vertex:?}").contains("ya29"));
}

/// A model's content is sent back to it unchanged: here a call of Gemini 3, with its id and its
/// signature.
#[tokio::test]
async fn a_call_comes_and_goes_back() {
    let streamed = include_str!("../fixtures/vertex_calls.body");
    let payloads: Vec<_> = streamed.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let mut server = Server::start(vec![events(&payloads), events(&[STOP])]).await;
    let gemini = gemini(&server);
    let deltas: Vec<_> = gemini.stream(question()).map(Result::unwrap).collect().await;
    let mut calls = Vec::new();
    for delta in deltas {
        match delta {
            // The loop's id, not the vendor's.
            ModelDelta::CallStart { slot, name, .. } => {
                calls.push(ToolCall::new(format!("call-{slot}"), name, ""))
            }
            ModelDelta::CallArguments { slot, delta } => calls[slot].arguments.push_str(&delta),
            ModelDelta::CallEnd { slot, opaque } => calls[slot].opaque = opaque,
            _ => {}
        }
    }
    let results = calls.iter().map(|call| {
        let content = vec![ContentBlock::text("sunny")];
        let (tool_call_id, name) = (call.id.clone(), call.name.clone());
        ContentBlock::ToolResult(ToolResult { tool_call_id, name, content, state: ToolState::Success })
    });
    let results = Message::new(Role::Tool, results.collect());
    let calls = Message::new(Role::Assistant, calls.into_iter().map(ContentBlock::ToolCall).collect());
    let messages = vec![Arc::new(Message::user("Weather?")), Arc::new(calls), Arc::new(results)];
    answer(gemini.stream(ModelRequest { messages, ..ModelRequest::default() })).await;
    server.request().await;
    let sent = server.request().await;
    insta::assert_snapshot!(
        sent.split_once("\r\n\r\n").unwrap().1,
        @r#"{"contents":[{"role":"user","parts":[{"text":"Weather?"}]},{"role":"model","parts":[{"functionCall":{"id":"call_463646","name":"get_weather","args":{"city": "Paris"}},"thoughtSignature":"AY89a19eCdKurFEZc2lnbmF0dXJlIG9mIHR3byBjYWxscw=="},{"functionCall":{"id":"call_463649","name":"get_weather","args":{"city": "Tokyo"}}}]},{"role":"user","parts":[{"functionResponse":{"id":"call_463646","name":"get_weather","response":{"output":"sunny"}}},{"functionResponse":{"id":"call_463649","name":"get_weather","response":{"output":"sunny"}}}]}]}"#
    );
}

#[tokio::test]
async fn a_stream_ends_with_its_reason() {
    check::<GenerateContent>(events(&[TEXT, STOP]), "Hi |stop").await;
    check::<GenerateContent>(events(&[TEXT, CALL, STOP]), r#"Hi +f {"a": 1} . |tool_calls"#).await;
    check::<GenerateContent>(events(&[TEXT, STOP, "[DONE]", "garbage"]), "Hi |stop").await;
    let mut cut = events(&[TEXT, STOP]);
    cut.pop();
    check::<GenerateContent>(cut, "Hi |stop").await;
}

#[tokio::test]
async fn the_form_without_events_is_read_when_it_is_complete() {
    let body = include_str!("../fixtures/array.body");
    let json = |body: &str| whole("200 OK", "content-type: application/json; charset=UTF-8\r\n", body);
    let said = "(HOST answered in one piece although asked to stream)";
    let usage = Usage::new(5, 4);
    check::<GenerateContent>(json(body), &format!("{said} One,  two. {:?} |stop", ModelDelta::Usage(usage)))
        .await;
    check::<GenerateContent>(
        json("[]"),
        "!protocol: HOST sent what is no Gemini response: it has no candidates: []",
    )
    .await;
    check::<GenerateContent>(
        json(r#"[{"error": {"code": 503,"message": "overloaded","status": "UNAVAILABLE"}}]"#),
        "!overloaded: HOST broke off its answer: overloaded",
    )
    .await;
}

#[tokio::test]
async fn googles_details_say_how_long_to_wait() {
    let body = include_str!("../fixtures/rate_limited.body");
    let error = failure::<GenerateContent>(refused("429 Too Many Requests", body)).await;
    assert_eq!((error.kind(), error.status()), (ErrorKind::RateLimited, Some(429)));
    assert!(error.is_retryable());
    assert_eq!(error.retry_after(), Some(Duration::from_nanos(34_074_824_224)));
    assert!(error.to_string().contains(" answered 429 Too Many Requests: You exceeded"), "{error}");
    // A header takes precedence.
    let error = failure::<GenerateContent>(whole("429 Too Many Requests", "retry-after: 7\r\n", body)).await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert_eq!(failure::<GenerateContent>(refused("429 Too Many Requests", "")).await.retry_after(), None);
}

#[tokio::test]
async fn googles_refusals_are_read() {
    check::<GenerateContent>(
        refused("400 Bad Request", include_str!("../fixtures/invalid_key.body")),
        "!auth: HOST answered 400 Bad Request: API key not valid. Please pass a valid API key. (check the API key and its rights)",
    )
    .await;
    check::<GenerateContent>(
        refused("404 Not Found", r#"{"error":{"code":404,"message":"models/m is not found for API version v1beta","status":"NOT_FOUND"}}"#),
        "!not_found: HOST answered 404 Not Found: models/m is not found for API version v1beta (check the model's name and the base URL)",
    )
    .await;
    // An error may come with the type of a stream, and as an array.
    check::<GenerateContent>(
        whole(
            "503 Service Unavailable",
            "content-type: text/event-stream\r\n",
            r#"[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]"#,
        ),
        "!overloaded: HOST answered 503 Service Unavailable: The model is overloaded.",
    )
    .await;
}

#[tokio::test]
async fn a_call_that_the_model_failed_to_write_is_asked_for_again() {
    let malformed = include_str!("../fixtures/malformed_call.body").trim().strip_prefix("data: ").unwrap();
    let mut failed = events(&[malformed]);
    failed[0] = head(
        "200 OK",
        "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n",
    );
    let server = Server::start(vec![failed, events(&[TEXT, STOP])]).await;
    let mut policy = RetryPolicy::default();
    (policy.min_wait, policy.jitter) = (Duration::from_millis(1), false);
    let again = Retry::with_policy(gemini(&server), policy);
    // What the failed call has used counts.
    let used = ModelDelta::Usage(Usage::new(2595, 0));
    assert_eq!(answer(again.stream(question())).await, format!("{used:?} (again after 1, 1ms) Hi |stop"));
}

#[tokio::test]
async fn what_is_kept_for_the_vendor_is_under_its_name() {
    let signed = TEXT.replace(r#""text": "Hi""#, r#""text": "Hi","thoughtSignature": "c2ln""#);
    let server = Server::start(vec![events(&[&signed, STOP])]).await;
    let deltas: Vec<_> = gemini(&server).stream(question()).map(Result::unwrap).collect().await;
    let ModelDelta::BlockEnd { opaque } = &deltas[1] else { panic!("{deltas:?}") };
    assert_eq!(Opaque::clone(opaque).keys().collect::<Vec<_>>(), ["gemini"]);
}
