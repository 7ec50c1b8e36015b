//! The provider against a scripted server: what is sent, what arrives when, and every way to fail.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod responses;

use mainstem_testing::raw::{Seen, Server, Step, events, head, whole};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use mainstem_message::{ContentBlock, Message, StopReason};
use mainstem_model::{ErrorKind, Model, ModelDelta, ModelError, ModelRequest, ModelStream};
use mainstem_openai::{OpenAi, OpenAiExt as _, azure};
use tokio::time::timeout;

const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

fn openai(server: &Server) -> OpenAi {
    OpenAi::new("gpt-test")
        .with_base_url(&format!("{}/v1", server.url()))
        .unwrap()
        .with_api_key("sk-123456789")
}

fn question() -> ModelRequest {
    ModelRequest { messages: vec![Arc::new(Message::user("Hello?"))], ..ModelRequest::default() }
}

/// The deltas in short: `Hi`, `(reason)` for an answer of one piece, `|stop`, `!kind: message`.
async fn answer(stream: ModelStream) -> String {
    let shown: Vec<_> = stream.map(show).collect().await;
    shown.join(" ")
}

fn show(delta: Result<ModelDelta, ModelError>) -> String {
    match delta {
        Ok(ModelDelta::Text(text)) => text,
        Ok(ModelDelta::NotStreaming { reason }) => format!("({reason})"),
        Ok(ModelDelta::Stop(reason)) => format!("|{reason}"),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("!{}: {error}", error.kind().code()),
    }
}

/// What one call yields when the server plays this script; `HOST` stands for the server.
async fn check(script: Vec<Step>, expected: &str) {
    let server = Server::start(vec![script]).await;
    let answer = answer(openai(&server).stream(question())).await;
    assert_eq!(answer.replace(&server.host(), "HOST"), expected);
}

/// The error of one call.
async fn failure(script: Vec<Step>) -> ModelError {
    let server = Server::start(vec![script]).await;
    openai(&server).stream(question()).next().await.unwrap().unwrap_err()
}

#[tokio::test]
async fn a_delta_arrives_before_the_server_goes_on() {
    let mut script = events(&[TEXT]);
    script.insert(2, Step::AwaitClose);
    let mut server = Server::start(vec![script]).await;
    let mut stream = openai(&server).stream(question());
    assert_eq!(stream.next().await.unwrap().unwrap(), ModelDelta::Text("Hi".into()));
    assert!(timeout(Duration::from_millis(50), stream.next()).await.is_err(), "the rest has not been sent");

    // Dropping the stream closes the connection.
    server.request().await;
    let dropped = Instant::now();
    drop(stream);
    assert_eq!(server.next().await, Seen::Closed);
    assert!(dropped.elapsed() < Duration::from_millis(100), "{:?}", dropped.elapsed());
}

#[tokio::test]
async fn dropping_a_call_that_waits_closes_the_connection() {
    let mut server = Server::start(vec![vec![Step::AwaitClose]]).await;
    let mut stream = openai(&server).stream(question());
    tokio::select! {
        delta = stream.next() => panic!("no answer yet: {delta:?}"),
        _ = server.request() => {}
    }
    let dropped = Instant::now();
    drop(stream);
    assert_eq!(server.next().await, Seen::Closed);
    assert!(dropped.elapsed() < Duration::from_millis(100), "{:?}", dropped.elapsed());
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_poll() {
    let mut server = Server::start(vec![events(&[STOP])]).await;
    let stream = openai(&server).stream(question());
    assert!(timeout(Duration::from_millis(30), server.next()).await.is_err());
    assert_eq!(answer(stream).await, "|stop");
    assert_eq!(server.next().await, Seen::Connected);
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
        @r#"{"model":"gpt-test","messages":[{"role":"user","content":"Hello?"}],"stream":true,"stream_options":{"include_usage":true}}"#
    );
}

#[tokio::test]
async fn a_client_of_ones_own_is_used() {
    let mut server = Server::start(vec![events(&[STOP])]).await;
    // Ours installs the crypto provider that every client needs.
    answer(OpenAi::new("m").with_base_url("http://127.0.0.1:1").unwrap().stream(question())).await;
    let client = mainstem_http::Client::builder().user_agent("mine").build().unwrap();
    answer(openai(&server).with_client(client).stream(question())).await;
    assert!(server.request().await.contains("\r\nuser-agent: mine\r\n"));
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
    check(events(&[TEXT, STOP, "[DONE]"]), "Hi |stop").await;
    check(events(&[TEXT, STOP]), "Hi |stop").await;
    check(events(&[TEXT, "[DONE]"]), "Hi |stop").await;
    check(events(&[TEXT, STOP, "[DONE]", "[DONE]", "garbage"]), "Hi |stop").await;
    // What comes after the end, or does not, makes no difference.
    let mut silent = events(&[TEXT, STOP, "[DONE]"]);
    silent.insert(4, Step::AwaitClose);
    check(silent, "Hi |stop").await;
    let mut cut = events(&[TEXT, STOP]);
    cut.pop();
    check(cut, "Hi |stop").await;
}

#[tokio::test]
async fn a_cut_is_an_error() {
    let cut = "!transport: HOST was cut off before its answer was complete:";
    let mut script = events(&[TEXT]);
    script.pop();
    check(script.clone(), &format!("Hi {cut} unexpected EOF during chunk size line")).await;
    script.push(Step::Send(b"20\r\ndata: {\"choi".to_vec()));
    check(script, &format!("Hi {cut} end of file before message length reached")).await;
    let ended = "!transport: HOST ended the connection before its answer was complete";
    check(events(&[TEXT]), &format!("Hi {ended}")).await;
    check(events(&[]), ended).await;
    check(vec![], "!transport: HOST did not answer: connection closed before message completed").await;
}

#[tokio::test]
async fn events_may_be_torn_apart() {
    let frame = format!("data: {}\r\n\r\n", TEXT.replace("Hi", "Hé"));
    let mut script =
        vec![head("200 OK", "content-type: Text/Event-Stream; charset=utf-8\r\nconnection: close\r\n")];
    for byte in frame.bytes() {
        script.extend([Step::Send(vec![byte]), Step::Pause(Duration::from_micros(100))]);
    }
    // The last event has no blank line after it, and no length tells where the body ends.
    script.push(Step::Send(format!("data: {STOP}").into_bytes()));
    check(script, "Hé |stop").await;
}

#[tokio::test]
async fn a_refusal_says_how_long_to_wait() {
    let body = r#"{"error":{"message":"Slow down","type":"requests","code":"rate_limit_exceeded"}}"#;
    let refused = |headers: &str| whole("429 Too Many Requests", headers, body);
    let error = failure(refused("retry-after: 7\r\ncontent-type: application/json\r\n")).await;
    assert_eq!((error.kind(), error.status()), (ErrorKind::RateLimited, Some(429)));
    assert!(error.is_retryable());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert!(error.to_string().ends_with(" answered 429 Too Many Requests: Slow down"), "{error}");
    assert_eq!(failure(refused("")).await.retry_after(), None);
    assert_eq!(
        failure(refused("retry-after-ms: 1500\r\n")).await.retry_after(),
        Some(Duration::from_millis(1500))
    );
}

#[tokio::test]
async fn refusals_are_read_whatever_they_are() {
    check(
        whole("502 Bad Gateway", "content-type: text/html\r\n", "<h1>Bad\r\n gateway</h1>"),
        "!server_error: HOST answered 502 Bad Gateway: <h1>Bad gateway</h1>",
    )
    .await;
    check(
        whole("401 Unauthorized", "", r#"{"error":{"message":"Wrong key sk-123456789"}}"#),
        "!auth: HOST answered 401 Unauthorized: Wrong key [secret] (check the API key and its rights)",
    )
    .await;
    let edge = format!(r#"{{"error":{{"message":"{} sk-123456789"}}}}"#, "x".repeat(195));
    let error = failure(whole("400 Bad Request", "", &edge)).await.to_string();
    assert!(!error.contains("sk-1") && error.ends_with("x [sec…"), "{error}");
    check(events(&[r#"{"error":"sk-123456789"}"#]), "!server_error: HOST broke off its answer: [secret]")
        .await;
    check(
        whole("307 Temporary Redirect", "location: http://elsewhere/\r\n", ""),
        "!invalid_request: HOST answered 307 Temporary Redirect (set the base URL to where it points; redirects are not followed)",
    )
    .await;
    // A body that breaks off is read as far as it goes.
    let mut script = whole("500 Internal Server Error", "", "sorry and more");
    script[1] = Step::Send(b"sorry".to_vec());
    check(script, "!server_error: HOST answered 500 Internal Server Error: sorry").await;
}

#[tokio::test]
async fn no_server_is_said_with_what_to_check() {
    let server = Server::start(vec![]).await;
    let (openai, host) = (openai(&server), server.host());
    drop(server);
    tokio::task::yield_now().await;
    let error = openai.stream(question()).next().await.unwrap().unwrap_err();
    let said = error.to_string().replace(&host, "HOST");
    assert!(said.starts_with("HOST can't be reached: Connection refused"), "{said}");
    assert!(said.ends_with("; is the server running, and is the base URL right?"), "{said}");
    assert!(error.is_retryable() && std::error::Error::source(&error).is_some());
}

#[tokio::test]
async fn an_answer_of_one_piece_is_said_to_be_one() {
    let json = |body: &str| whole("200 OK", "content-type: application/json; charset=utf-8\r\n", body);
    let said = "(HOST answered in one piece although asked to stream)";
    let body =
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}"#;
    check(json(body), &format!("{said} Hi |stop")).await;
    check(json("{}"), "!protocol: HOST sent what is no chat completion: it has no choices: {}").await;
    check(
        json(r#"{"error":{"code":503,"message":"no provider"}}"#),
        "!overloaded: HOST broke off its answer: no provider",
    )
    .await;
    let ndjson = "{\"message\":{\"content\":\"a\"},\"done\":false}\n{\"done\":true}";
    check(
        json(ndjson),
        "!protocol: HOST sent what is no chat completion: trailing characters at line 2 column 1: {\"message\":{\"content\":\"a\"},\"done\":false} {\"done\":true}",
    )
    .await;
    let mut cut = json(body);
    cut[1] = Step::Send(b"{\"choices\"".to_vec());
    check(
        cut,
        "!transport: HOST was cut off before its answer was complete: end of file before message length reached",
    )
    .await;
}

#[tokio::test]
async fn garbage_is_quoted() {
    check(
        whole("200 OK", "content-type: text/html\r\n", "<html>\n  Welcome to nginx!"),
        "!protocol: HOST answered with text/html, which is no chat completion (check the base URL): <html> Welcome to nginx!",
    )
    .await;
    check(
        whole("200 OK", "content-type: application/x-ndjson\r\n", "{\"done\":true}\n"),
        "!protocol: HOST answered with application/x-ndjson, which is no chat completion (check the base URL): {\"done\":true}",
    )
    .await;
    check(
        events(&[TEXT, "nonsense"]),
        "Hi !protocol: HOST sent what is no chat completion: expected ident at line 1 column 2: nonsense",
    )
    .await;
    check(
        events(&[TEXT, r#"{"error":{"code":500,"message":"out of memory"}}"#, STOP]),
        "Hi !server_error: HOST broke off its answer: out of memory",
    )
    .await;
}

/// A server that refuses a first request, then accepts; the requests it saw.
async fn taught(complaint: &str, accepted: Vec<Step>, request: ModelRequest, expected: &str) -> Vec<String> {
    let refused = whole("400 Bad Request", "content-type: application/json\r\n", complaint);
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
    let complaint = r#"{"error":{"message":"Unrecognized request argument supplied: stream_options"}}"#;
    let accepted = |mut script: Vec<Step>| {
        script[0] = head(
            "200 OK",
            "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n",
        );
        script
    };
    let seen = taught(complaint, accepted(events(&[TEXT, STOP])), question(), "Hi |stop").await;
    assert!(seen[0].contains("stream_options") && !seen[1].contains("stream_options"));
    assert!(seen[1].contains("\"stream\":true"));
}

#[tokio::test]
async fn a_model_that_may_not_stream_answers_in_one_piece() {
    let complaint = r#"{"error":{"message":"Verify first.","type":"invalid_request_error","param":"stream","code":"unsupported_value"}}"#;
    let body = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":null}"#;
    let accepted = whole("200 OK", "content-type: application/json\r\n", body);
    let seen = taught(complaint, accepted, question(), "(Verify first.) Hi |stop").await;
    assert!(seen[0].contains("\"stream\":true") && seen[1].contains("\"stream\":false"));
}

#[tokio::test]
async fn a_complaint_that_cannot_be_heeded_is_the_answer() {
    let complaint = r#"{"error":{"message":"stream_options: no","param":"stream_options"}}"#;
    let refused = || whole("400 Bad Request", "", complaint);
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
async fn one_connection_serves_one_call_after_another() {
    let mut script = events(&[TEXT, STOP, "[DONE]"]);
    script.push(Step::Next);
    script.extend(events(&[TEXT, STOP, "[DONE]"]));
    let mut server = Server::start(vec![script.clone(), script]).await;
    let openai = openai(&server);
    for _ in 0..2 {
        assert_eq!(answer(openai.stream(question())).await, "Hi |stop");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(server.next().await, Seen::Connected);
    server.next().await;
    assert!(matches!(server.next().await, Seen::Request(_)), "no second connection");
}

#[tokio::test]
async fn a_conversation_the_api_has_no_form_for_is_not_sent() {
    let mut server = Server::start(vec![events(&[STOP])]).await;
    let mut message = Message::user("Look");
    message.content.push(ContentBlock::Data {
        media_type: "video/mp4".into(),
        source: mainstem_message::DataSource::Url("https://h/v.mp4".into()),
        opaque: mainstem_message::Opaque::new(),
    });
    let request = ModelRequest { messages: vec![Arc::new(message)], ..ModelRequest::default() };
    let mut stream = openai(&server).stream(request);
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(stream.next().await.is_none(), "an error is the last item");
    assert!(timeout(Duration::from_millis(30), server.next()).await.is_err());
}

#[tokio::test]
async fn the_last_delta_is_the_reason_to_stop() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
    let server = Server::start(vec![events(&[TEXT, STOP, usage, "[DONE]"])]).await;
    let deltas: Vec<_> = openai(&server).stream(question()).map(Result::unwrap).collect().await;
    assert_eq!(deltas[1], ModelDelta::Usage(mainstem_message::Usage::new(3, 1)));
    assert_eq!(deltas[2..], [ModelDelta::Stop(StopReason::Stop)]);
}
