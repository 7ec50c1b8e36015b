//! The provider against a scripted server: what is sent, what arrives when, and every way to fail.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mainstem_testing::raw::{Seen, Server, Step, head, named_events as events, whole};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use mainstem_anthropic::Anthropic;
use mainstem_message::{ContentBlock, DataSource, Message, Opaque, StopReason, Usage};
use mainstem_model::{
    ErrorKind, Model, ModelDelta, ModelError, ModelOptions, ModelRequest, ModelStream, Retry,
};
use tokio::time::timeout;

const KEY: &str = "sk-ant-123456789";
const TEXT: &str = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#;
const END: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;
const CALL: &str = r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}"#;

fn anthropic(server: &Server) -> Anthropic {
    Anthropic::new("claude-test").with_base_url(&server.url()).unwrap().with_api_key(KEY)
}

fn question() -> ModelRequest {
    ModelRequest { messages: vec![Arc::new(Message::user("Hello?"))], ..ModelRequest::default() }
}

/// The deltas in short: `Hi`, `+f` for a call, `;` for an ended block, `(reason)` for an answer of one piece, `|stop`,
/// `!kind: message`.
async fn answer(stream: ModelStream) -> String {
    let shown: Vec<_> = stream.map(show).collect().await;
    shown.join(" ")
}

fn show(delta: Result<ModelDelta, ModelError>) -> String {
    match delta {
        Ok(ModelDelta::Text(text)) => text,
        Ok(ModelDelta::CallStart { name, .. }) => format!("+{name}"),
        Ok(ModelDelta::CallArguments { delta, .. }) => delta,
        Ok(ModelDelta::BlockEnd { .. }) => ";".to_owned(),
        Ok(ModelDelta::NotStreaming { reason }) => format!("({reason})"),
        Ok(ModelDelta::Stop(reason)) => format!("|{reason}"),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("!{}: {error}", error.kind().code()),
    }
}

/// What one call yields when the server plays this script; `HOST` stands for the server.
async fn check(script: Vec<Step>, expected: &str) {
    let server = Server::start(vec![script]).await;
    let answer = answer(anthropic(&server).stream(question())).await;
    assert!(!answer.contains(KEY), "{answer}");
    assert_eq!(answer.replace(&server.host(), "HOST"), expected);
}

/// The error of one call.
async fn failure(script: Vec<Step>) -> ModelError {
    let server = Server::start(vec![script]).await;
    anthropic(&server).stream(question()).next().await.unwrap().unwrap_err()
}

/// A refusal as Anthropic words it.
fn refused(status: &str, headers: &str, kind: &str, message: &str) -> Vec<Step> {
    let body = format!(
        r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}}"#
    );
    whole(status, &format!("content-type: application/json\r\n{headers}"), &body)
}

#[tokio::test]
async fn a_delta_arrives_before_the_server_goes_on() {
    let mut script = events(&[TEXT]);
    script.insert(2, Step::AwaitClose);
    let mut server = Server::start(vec![script]).await;
    let mut stream = anthropic(&server).stream(question());
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
    let mut stream = anthropic(&server).stream(question());
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
    let stream = anthropic(&server).stream(question());
    assert!(timeout(Duration::from_millis(30), server.next()).await.is_err());
    assert_eq!(answer(stream).await, "|stop");
    assert_eq!(server.next().await, Seen::Connected);
}

/// The head of a request, its lines in order.
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
        @r#"{"model":"claude-test","max_tokens":32000,"messages":[{"role":"user","content":[{"type":"text","text":"Hello?"}]}],"stream":true}"#
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
async fn a_client_of_ones_own_is_used() {
    let mut server = Server::start(vec![events(&[STOP])]).await;
    // Ours installs the crypto provider that every client needs.
    answer(Anthropic::new("m").with_base_url("http://127.0.0.1:1").unwrap().stream(question())).await;
    let client = mainstem_http::Client::builder().user_agent("mine").build().unwrap();
    answer(anthropic(&server).with_client(client).stream(question())).await;
    assert!(server.request().await.contains("\r\nuser-agent: mine\r\n"));
}

#[tokio::test]
async fn a_stream_ends_with_a_stop_reason_or_message_stop() {
    check(events(&[TEXT, END, STOP]), "Hi |stop").await;
    check(events(&[TEXT, END]), "Hi |stop").await;
    check(events(&[TEXT, STOP]), "Hi |stop").await;
    check(events(&[TEXT, END, STOP, STOP, "garbage"]), "Hi |stop").await;
    // What comes after the end, or does not, makes no difference.
    let mut silent = events(&[TEXT, END, STOP]);
    silent.insert(4, Step::AwaitClose);
    check(silent, "Hi |stop").await;
    let mut cut = events(&[TEXT, END]);
    cut.pop();
    check(cut, "Hi |stop").await;
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
async fn a_cut_is_an_error() {
    let cut = "!transport: HOST was cut off before its answer was complete:";
    let mut script = events(&[TEXT]);
    script.pop();
    check(script.clone(), &format!("Hi {cut} unexpected EOF during chunk size line")).await;
    // In mid-delta, and inside a character.
    for half in
        [&b"data: {\"type\":\"conte"[..], "data: {\"type\":\"ping\",\"é".as_bytes().split_last().unwrap().1]
    {
        let mut torn = script.clone();
        torn.push(Step::Send([&b"40\r\n"[..], half].concat()));
        check(torn, &format!("Hi {cut} end of file before message length reached")).await;
    }
    // Inside the arguments of a call.
    let arguments = r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#;
    let mut script = events(&[CALL, arguments]);
    script.pop();
    check(script, &format!("+f {{\"a\": {cut} unexpected EOF during chunk size line")).await;
    let ended = "!transport: HOST ended the connection before its answer was complete";
    check(events(&[CALL, arguments]), &format!("+f {{\"a\": {ended}")).await;
    check(events(&[TEXT]), &format!("Hi {ended}")).await;
    check(events(&[r#"{"type":"ping"}"#]), ended).await;
    check(events(&[]), ended).await;
    check(vec![], "!transport: HOST did not answer: connection closed before message completed").await;
}

#[tokio::test]
async fn events_may_be_torn_apart() {
    let frame = format!("event: content_block_delta\r\ndata: {}\r\n\r\n", TEXT.replace("Hi", "Hé"));
    let mut script =
        vec![head("200 OK", "content-type: Text/Event-Stream; charset=utf-8\r\nconnection: close\r\n")];
    for byte in frame.bytes() {
        script.extend([Step::Send(vec![byte]), Step::Pause(Duration::from_micros(100))]);
    }
    // The last event has no blank line after it, and no length tells where the body ends.
    script.push(Step::Send(format!("data: {END}").into_bytes()));
    check(script, "Hé |stop").await;
}

#[tokio::test]
async fn every_refusal_has_its_kind() {
    let check = async |status: &str, kind: &str, expected: ErrorKind, retryable: bool| {
        let error = failure(refused(status, "", kind, "No.")).await;
        assert_eq!((error.kind(), error.is_retryable()), (expected, retryable), "{status}");
        let number = status.split(' ').next().unwrap();
        assert_eq!(error.status(), number.parse().ok());
        assert!(error.to_string().contains(&format!(" answered {number} ")), "{error}");
        assert!(error.to_string().contains(": No."), "{error}");
    };
    // https://platform.claude.com/docs/en/api/errors
    check("400 Bad Request", "invalid_request_error", ErrorKind::InvalidRequest, false).await;
    check("401 Unauthorized", "authentication_error", ErrorKind::Auth, false).await;
    check("402 Payment Required", "billing_error", ErrorKind::QuotaExceeded, false).await;
    check("403 Forbidden", "permission_error", ErrorKind::Auth, false).await;
    check("404 Not Found", "not_found_error", ErrorKind::NotFound, false).await;
    check("413 Payload Too Large", "request_too_large", ErrorKind::InvalidRequest, false).await;
    check("429 Too Many Requests", "rate_limit_error", ErrorKind::RateLimited, true).await;
    check("500 Internal Server Error", "api_error", ErrorKind::Server, true).await;
    check("504 Gateway Timeout", "timeout_error", ErrorKind::Timeout, true).await;
    check("529 Site Is Overloaded", "overloaded_error", ErrorKind::Overloaded, true).await;
    let long = failure(refused(
        "400 Bad Request",
        "",
        "invalid_request_error",
        "prompt is too long: 9 tokens > 8 maximum",
    ))
    .await;
    assert_eq!(long.kind(), ErrorKind::ContextOverflow);
}

#[tokio::test]
async fn a_refusal_says_how_long_to_wait() {
    let limited = |headers: &str| refused("429 Too Many Requests", headers, "rate_limit_error", "Slow down");
    let error = failure(limited("retry-after: 7\r\n")).await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert!(error.to_string().ends_with(" answered 429 Too Many Requests: Slow down"), "{error}");
    assert_eq!(failure(limited("")).await.retry_after(), None);
}

#[tokio::test]
async fn an_overload_is_asked_again() {
    let overloaded =
        refused("529 Site Is Overloaded", "retry-after: 0\r\n", "overloaded_error", "Overloaded");
    let server = Server::start(vec![overloaded, events(&[TEXT, END, STOP])]).await;
    let answer = answer(Retry::new(anthropic(&server)).stream(question())).await;
    assert!(answer.starts_with("Retry") && answer.ends_with(" Hi |stop"), "{answer}");
}

#[tokio::test]
async fn the_key_is_nowhere_to_be_seen() {
    let echo = format!("invalid x-api-key {KEY}");
    check(
        refused("401 Unauthorized", "", "authentication_error", &echo),
        "!auth: HOST answered 401 Unauthorized: invalid x-api-key [secret] (check the API key and its rights)",
    )
    .await;
    let error = format!(r#"{{"type":"error","error":{{"type":"api_error","message":"{echo}"}}}}"#);
    check(events(&[&error]), "!server_error: HOST broke off its answer: invalid x-api-key [secret]").await;
    check(
        events(&[&format!("{{{KEY}")]),
        "!protocol: HOST sent what is no message of the Messages API: key must be a string at line 1 column 2: {[secret]",
    )
    .await;
    // The version is no secret.
    check(
        refused("400 Bad Request", "", "invalid_request_error", "2023-06-01 is not a valid version"),
        "!invalid_request: HOST answered 400 Bad Request: 2023-06-01 is not a valid version",
    )
    .await;
    let server = Server::start(vec![]).await;
    let shown = format!("{:?} {:?}", anthropic(&server), anthropic(&server).stream(question()).next().await);
    assert!(!shown.contains("sk-ant"), "{shown}");
}

#[tokio::test]
async fn refusals_are_read_whatever_they_are() {
    check(
        whole("502 Bad Gateway", "content-type: text/html\r\n", "<h1>Bad\r\n gateway</h1>"),
        "!server_error: HOST answered 502 Bad Gateway: <h1>Bad gateway</h1>",
    )
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
    let (anthropic, host) = (anthropic(&server), server.host());
    drop(server);
    tokio::task::yield_now().await;
    let error = anthropic.stream(question()).next().await.unwrap().unwrap_err();
    let said = error.to_string().replace(&host, "HOST");
    assert!(said.starts_with("HOST can't be reached: Connection refused"), "{said}");
    assert!(error.is_retryable() && std::error::Error::source(&error).is_some());
}

#[tokio::test]
async fn an_answer_of_one_piece_is_said_to_be_one() {
    let json = |body: &str| whole("200 OK", "content-type: application/json; charset=utf-8\r\n", body);
    let said = "(HOST answered in one piece although asked to stream)";
    let body = r#"{"type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"max_tokens"}"#;
    check(json(body), &format!("{said} Hi ; |length")).await;
    check(json("{}"), "!protocol: HOST sent what is no message of the Messages API: it has no content: {}")
        .await;
    check(
        json(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
        "!overloaded: HOST broke off its answer: Overloaded",
    )
    .await;
    let mut cut = json(body);
    cut[1] = Step::Send(b"{\"content\"".to_vec());
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
        "!protocol: HOST answered with text/html, which is no message of the Messages API (check the base URL): <html> Welcome to nginx!",
    )
    .await;
    check(
        events(&[TEXT, "nonsense"]),
        "Hi !protocol: HOST sent what is no message of the Messages API: expected ident at line 1 column 2: nonsense",
    )
    .await;
    check(
        events(&[
            TEXT,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            STOP,
        ]),
        "Hi !overloaded: HOST broke off its answer: Overloaded",
    )
    .await;
}

/// A question with a temperature.
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
async fn one_connection_serves_one_call_after_another() {
    let mut script = events(&[TEXT, END, STOP]);
    script.push(Step::Next);
    script.extend(events(&[TEXT, END, STOP]));
    let mut server = Server::start(vec![script.clone(), script]).await;
    let anthropic = anthropic(&server);
    for _ in 0..2 {
        assert_eq!(answer(anthropic.stream(question())).await, "Hi |stop");
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
        source: DataSource::Url("https://h/v.mp4".into()),
        opaque: Opaque::new(),
    });
    let request = ModelRequest { messages: vec![Arc::new(message)], ..ModelRequest::default() };
    let mut stream = anthropic(&server).stream(request);
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(stream.next().await.is_none(), "an error is the last item");
    assert!(timeout(Duration::from_millis(30), server.next()).await.is_err());
}
