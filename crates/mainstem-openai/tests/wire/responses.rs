//! The Responses API against a scripted server: what is sent, what arrives when, and every way to fail.

use mainstem_testing::raw::{Seen, Server, Step, events, head, whole};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use mainstem_message::{ContentBlock, Message, Role, ToolCall};
use mainstem_model::{ErrorKind, Model, ModelDelta, ModelError, ModelOptions, ModelRequest};
use mainstem_openai::{OpenAiExt as _, OpenAiResponses};
use tokio::time::timeout;

use super::{answer, question};

const TEXT: &str = r#"{"type":"response.output_text.delta","output_index":0,"delta":"Hi"}"#;
const COMPLETED: &str = r#"{"type":"response.completed","response":{"status":"completed"}}"#;

fn responses(server: &Server) -> OpenAiResponses {
    OpenAiResponses::new("gpt-test")
        .with_base_url(&format!("{}/v1", server.url()))
        .unwrap()
        .with_api_key("sk-123456789")
}

/// What one call yields when the server plays this script; `HOST` stands for the server.
async fn check(script: Vec<Step>, expected: &str) {
    let server = Server::start(vec![script]).await;
    let answer = answer(responses(&server).stream(question())).await;
    assert_eq!(answer.replace(&server.host(), "HOST"), expected);
    assert!(!answer.contains("sk-1"), "{answer}");
}

async fn failure(script: Vec<Step>) -> ModelError {
    let server = Server::start(vec![script]).await;
    responses(&server).stream(question()).next().await.unwrap().unwrap_err()
}

/// The body of a request.
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
        @r#"{"model":"gpt-test","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hello?"}]}],"store":false,"include":["reasoning.encrypted_content"],"stream":true}"#
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
    // In pieces of seven bytes, which are neither events nor characters.
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
async fn a_delta_arrives_before_the_server_goes_on_and_a_drop_closes_the_connection() {
    let mut script = events(&[TEXT]);
    script.insert(2, Step::AwaitClose);
    let mut server = Server::start(vec![script]).await;
    let mut stream = responses(&server).stream(question());
    assert_eq!(stream.next().await.unwrap().unwrap(), ModelDelta::Text("Hi".into()));
    assert!(timeout(Duration::from_millis(50), stream.next()).await.is_err(), "the rest has not been sent");
    server.request().await;
    let dropped = Instant::now();
    drop(stream);
    assert_eq!(server.next().await, Seen::Closed);
    assert!(dropped.elapsed() < Duration::from_millis(100), "{:?}", dropped.elapsed());
}

#[tokio::test]
async fn a_cut_is_an_error_wherever_it_comes() {
    let cut = "!transport: HOST was cut off before its answer was complete:";
    check(vec![], "!transport: HOST did not answer: connection closed before message completed").await;
    let mut script = events(&[TEXT]);
    script.pop();
    check(script.clone(), &format!("Hi {cut} unexpected EOF during chunk size line")).await;
    // In a delta, in a character, and in the arguments of a call.
    let parts: [&[u8]; 3] = [
        br#"data: {"type":"response.output_text.delta","delta":"H"#,
        b"data: {\"type\":\"response.output_text.delta\",\"delta\":\"H\xc3",
        br#"data: {"type":"response.function_call_arguments.delta","delta":"{\"a"#,
    ];
    for part in parts {
        let mut script = script.clone();
        script.push(Step::Send([b"ff\r\n", part].concat()));
        check(script, &format!("Hi {cut} end of file before message length reached")).await;
    }
    let ended = "!transport: HOST ended the connection before its answer was complete";
    check(events(&[TEXT]), &format!("Hi {ended}")).await;
    check(events(&[TEXT, "[DONE]"]), &format!("Hi {ended}")).await;
    check(events(&[]), ended).await;
    // After the end it does no harm.
    let mut late = events(&[TEXT, COMPLETED]);
    late.pop();
    check(late, "Hi |stop").await;
    check(events(&[TEXT, COMPLETED, "garbage"]), "Hi |stop").await;
}

#[tokio::test]
async fn refusals_are_errors_that_say_what_to_do() {
    check(
        whole("401 Unauthorized", "", r#"{"error":{"message":"Incorrect API key provided: sk-123456789.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#),
        "!auth: HOST answered 401 Unauthorized: Incorrect API key provided: [secret]. (check the API key and its rights)",
    )
    .await;
    check(
        whole("404 Not Found", "", r#"{"error":{"message":"The model 'gpt-test' does not exist.","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#),
        "!not_found: HOST answered 404 Not Found: The model 'gpt-test' does not exist. (check the model's name and the base URL)",
    )
    .await;
    check(
        whole(
            "500 Internal Server Error",
            "",
            r#"{"error":{"message":"Sorry","type":"server_error","param":null,"code":null}}"#,
        ),
        "!server_error: HOST answered 500 Internal Server Error: Sorry",
    )
    .await;
    check(
        whole("503 Service Unavailable", "", "overloaded"),
        "!overloaded: HOST answered 503 Service Unavailable: overloaded",
    )
    .await;
    let limited =
        r#"{"error":{"message":"Slow down","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#;
    let error = failure(whole("429 Too Many Requests", "retry-after: 7\r\n", limited)).await;
    assert_eq!((error.kind(), error.status()), (ErrorKind::RateLimited, Some(429)));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert!(error.is_retryable());
}

#[tokio::test]
async fn failures_in_mid_stream_are_errors() {
    check(
        events(&[
            TEXT,
            r#"{"type":"error","code":"server_error","message":"no sk-123456789","param":null}"#,
            COMPLETED,
        ]),
        "Hi !server_error: HOST broke off its answer: no [secret]",
    )
    .await;
    check(
        events(&[TEXT, r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Slow down"}}}"#]),
        "Hi !rate_limited: HOST broke off its answer: Slow down",
    )
    .await;
    check(
        events(&[TEXT, "nonsense"]),
        "Hi !protocol: HOST sent what is no response: expected ident at line 1 column 2: nonsense",
    )
    .await;
    check(
        whole("200 OK", "content-type: text/html\r\n", "<html>Welcome to nginx!"),
        "!protocol: HOST answered with text/html, which is no response (check the base URL): <html>Welcome to nginx!",
    )
    .await;
}

#[tokio::test]
async fn an_answer_of_one_piece_is_said_to_be_one() {
    let body = r#"{"object":"response","status":"completed","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}"#;
    let script = || whole("200 OK", "content-type: application/json\r\n", body);
    let said = "BlockEnd { opaque: {} } |stop";
    check(script(), &format!("(HOST answered in one piece although asked to stream) Hi {said}")).await;
    let mut server = Server::start(vec![script()]).await;
    let model = responses(&server).without_streaming("too old");
    assert_eq!(answer(model.stream(question())).await, format!("(too old) Hi {said}"));
    assert!(server.request().await.contains("\"stream\":false"));
}

/// The bodies that a server saw which refused the first request and accepted the next two, the second by a clone.
async fn taught(complaint: &str, request: ModelRequest) -> Vec<String> {
    let refused = || whole("400 Bad Request", "content-type: application/json\r\n", complaint);
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
    let complaint = r#"{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}"#;
    let seen = taught(complaint, question()).await;
    assert!(seen[0].contains("\"include\"") && !seen[1].contains("\"include\""));
    assert_eq!(seen[1], seen[2], "remembered by clones");
}

#[tokio::test]
async fn an_organization_without_summaries_thinks_all_the_same() {
    let complaint = r#"{"error":{"message":"Verify first.","type":"invalid_request_error","param":"reasoning.summary","code":"unsupported_value"}}"#;
    let mut options = ModelOptions::new();
    options.reasoning_effort = Some("low".to_owned());
    let seen = taught(complaint, ModelRequest { options: Arc::new(options), ..question() }).await;
    assert!(seen[0].contains(r#""reasoning":{"effort":"low","summary":"auto"}"#));
    assert!(seen[1].contains(r#""reasoning":{"effort":"low"}"#));
    assert_eq!(seen[1], seen[2], "remembered by clones");
}

#[tokio::test]
async fn reasoning_of_another_account_is_left_out_for_this_conversation() {
    let complaint = r#"{"error":{"message":"The encrypted content gAAA could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}"#;
    let kept = r#"{"openai":{"type":"reasoning","id":"rs","encrypted_content":"gAAA","summary":[]}}"#;
    let opaque = serde_json::from_str(kept).unwrap();
    let thought = ContentBlock::Thinking { thinking: String::new(), opaque };
    let call = ContentBlock::ToolCall(ToolCall::new("c", "f", "{}"));
    let turn = Message::new(Role::Assistant, vec![thought, call]);
    let request = ModelRequest { messages: vec![Arc::new(turn)], ..ModelRequest::default() };
    let seen = taught(complaint, request).await;
    assert!(seen[0].contains("gAAA") && !seen[1].contains("gAAA") && seen[2].contains("gAAA"));
    assert!(seen.iter().all(|body| body.contains(r#""call_id":"c""#)));
}

#[tokio::test]
async fn a_complaint_that_cannot_be_heeded_is_the_answer() {
    let complaint = r#"{"error":{"message":"include: no","param":"include"}}"#;
    let refused = || whole("400 Bad Request", "", complaint);
    let server = Server::start(vec![refused(), refused()]).await;
    let answer = answer(responses(&server).stream(question())).await;
    assert!(answer.starts_with("!invalid_request:") && answer.ends_with("include: no"), "{answer}");
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_poll_or_without_a_form() {
    let mut server = Server::start(vec![events(&[COMPLETED])]).await;
    let mut message = Message::user("Look");
    message.content.push(ContentBlock::Data {
        media_type: "video/mp4".into(),
        source: mainstem_message::DataSource::Url("https://h/v.mp4".into()),
        opaque: mainstem_message::Opaque::new(),
    });
    let request = ModelRequest { messages: vec![Arc::new(message)], ..ModelRequest::default() };
    let mut stream = responses(&server).stream(request);
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(stream.next().await.is_none(), "an error is the last item");
    let stream = responses(&server).stream(question());
    assert!(timeout(Duration::from_millis(30), server.next()).await.is_err());
    assert_eq!(answer(stream).await, "|stop");
}
