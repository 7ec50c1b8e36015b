//! The provider against a scripted server: what is sent, what arrives when, and every way to fail.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mainstem_testing::raw::{Seen, Server, Step, chunk, head, lines, whole};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use mainstem_message::{ContentBlock, DataSource, Message, Opaque, StopReason, Usage};
use mainstem_model::{ErrorKind, Model, ModelDelta, ModelError, ModelOptions, ModelRequest, ModelStream};
use mainstem_ollama::{Ollama, OllamaExt as _};
use serde_json::Value;
use tokio::time::timeout;

const TEXT: &str = r#"{"model":"qwen3","created_at":"2025-10-26T17:15:24.097767Z","message":{"role":"assistant","content":"Hi"},"done":false}"#;
const DONE: &str = r#"{"model":"qwen3","created_at":"2025-10-26T17:15:24.166576Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}"#;

fn ollama(server: &Server) -> Ollama {
    Ollama::new("qwen3").with_base_url(&server.host()).unwrap()
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
        Ok(ModelDelta::CallStart { name, .. }) => format!("+{name}"),
        Ok(ModelDelta::CallArguments { delta, .. }) => delta,
        Ok(ModelDelta::CallEnd { .. }) => ".".into(),
        Ok(ModelDelta::Stop(reason)) => format!("|{reason}"),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("!{}: {error}", error.kind().code()),
    }
}

/// What one call yields when the server plays this script; `HOST` stands for the server.
async fn check(script: Vec<Step>, expected: &str) {
    check_with(script, |ollama| ollama, expected).await;
}

async fn check_with(script: Vec<Step>, with: impl FnOnce(Ollama) -> Ollama, expected: &str) {
    let server = Server::start(vec![script]).await;
    let answer = answer(with(ollama(&server)).stream(question())).await;
    assert_eq!(answer.replace(&server.host(), "HOST"), expected);
}

/// The error of one call.
async fn failure(script: Vec<Step>) -> ModelError {
    let server = Server::start(vec![script]).await;
    ollama(&server).stream(question()).next().await.unwrap().unwrap_err()
}

/// A refusal as Ollama writes one.
fn refused(status: &str, error: &str) -> Vec<Step> {
    let body = serde_json::json!({ "error": error }).to_string();
    whole(status, "content-type: application/json; charset=utf-8\r\n", &body)
}

#[tokio::test]
async fn a_delta_arrives_before_the_server_goes_on() {
    let mut script = lines(&[TEXT]);
    script.insert(2, Step::AwaitClose);
    let mut server = Server::start(vec![script]).await;
    let mut stream = ollama(&server).stream(question());
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
    let mut stream = ollama(&server).stream(question());
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
    let mut server = Server::start(vec![lines(&[DONE])]).await;
    let stream = ollama(&server).stream(question());
    assert!(timeout(Duration::from_millis(30), server.next()).await.is_err());
    assert_eq!(answer(stream).await, "|stop");
    assert_eq!(server.next().await, Seen::Connected);
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
    content-length: 107
    content-type: application/json
    host: HOST
    user-agent: mainstem/0.1.0
    x-title: Test
    ");
    insta::assert_snapshot!(
        body,
        @r#"{"model":"qwen3","messages":[{"role":"user","content":"Hello?"}],"stream":true,"options":{"num_ctx":64000}}"#
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
async fn a_client_of_ones_own_is_used() {
    let mut server = Server::start(vec![lines(&[DONE])]).await;
    // Ours installs the crypto provider that every client needs.
    answer(Ollama::new("m").with_base_url("127.0.0.1:1").unwrap().stream(question())).await;
    let client = mainstem_http::Client::builder().user_agent("mine").build().unwrap();
    answer(ollama(&server).with_client(client).stream(question())).await;
    assert!(server.request().await.contains("\r\nuser-agent: mine\r\n"));
}

#[tokio::test]
async fn a_stream_ends_when_it_is_done() {
    check(lines(&[TEXT, DONE]), "Hi |stop").await;
    check(lines(&[TEXT, "", DONE, DONE, "garbage"]), "Hi |stop").await;
    // What comes after the end, or does not, makes no difference.
    let mut silent = lines(&[TEXT, DONE]);
    silent.insert(3, Step::AwaitClose);
    check(silent, "Hi |stop").await;
    let mut cut = lines(&[TEXT, DONE]);
    cut.pop();
    check(cut, "Hi |stop").await;
}

/// A stream of one line, and then as much of another one as is given here, in an HTTP chunk that is complete.
fn cut(rest: &[u8]) -> Vec<Step> {
    let mut script = lines(&[TEXT]);
    script.pop();
    script.push(chunk(rest));
    script
}

#[tokio::test]
async fn a_cut_is_an_error() {
    let says = "!transport: HOST was cut off before its answer was complete:";
    let eof = "unexpected EOF during chunk size line";
    // Before the first byte, and between two lines.
    check(vec![], "!transport: HOST did not answer: connection closed before message completed").await;
    let mut script = lines(&[TEXT]);
    script.pop();
    check(script.clone(), &format!("Hi {says} {eof}")).await;
    // In a delta, inside a character, and inside the JSON of a call.
    check(cut(br#"{"message":{"content":"Hel"#), &format!("Hi {says} {eof}")).await;
    check(cut(b"{\"message\":{\"content\":\"H\xc3"), &format!("Hi {says} {eof}")).await;
    let call = br#"{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"city":"To"#;
    check(cut(call), &format!("Hi {says} {eof}")).await;
    // Inside an HTTP chunk.
    script.push(Step::Send(b"20\r\n{\"mess".to_vec()));
    check(script, &format!("Hi {says} end of file before message length reached")).await;
    // With a proper end of the body that is no end of the answer.
    let ended = "!transport: HOST ended the connection before its answer was complete";
    check(lines(&[TEXT]), &format!("Hi {ended}")).await;
    check(lines(&[TEXT, r#"{"message":{"content":"Hel"#]), &format!("Hi {ended}")).await;
    check(lines(&[]), ended).await;
}

#[tokio::test]
async fn lines_may_be_torn_apart() {
    let call = r#"{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"city":"Zürich"}}}]},"done":false}"#;
    let mut script =
        vec![head("200 OK", "content-type: Application/X-NDJSON; charset=utf-8\r\nconnection: close\r\n")];
    for byte in format!("{}\r\n{call}\n", TEXT.replace("Hi", "Hé")).bytes() {
        script.extend([Step::Send(vec![byte]), Step::Pause(Duration::from_micros(100))]);
    }
    // The last line has no end, and no length tells where the body ends.
    script.push(Step::Send(DONE.as_bytes().to_vec()));
    check(script, r#"Hé +f {"city":"Zürich"} . |tool_calls"#).await;
}

#[tokio::test]
async fn a_model_that_is_not_there_is_to_be_pulled() {
    check(
        refused("404 Not Found", "model 'qwen3' not found"),
        "!not_found: HOST answered 404 Not Found: model 'qwen3' not found; run `ollama pull qwen3` (check the model's name and the base URL)",
    )
    .await;
    let error = failure(refused("404 Not Found", "model \"qwen3\" not found, try pulling it first")).await;
    assert!(error.to_string().contains("; run `ollama pull qwen3`"), "{error}");
    assert!(!error.is_retryable());
    // Another server, or another path.
    check(
        whole("404 Not Found", "content-type: text/plain\r\n", "404 page not found"),
        "!not_found: HOST answered 404 Not Found: 404 page not found (check the model's name and the base URL)",
    )
    .await;
}

#[tokio::test]
async fn who_is_not_signed_in_is_told_how() {
    let body = r#"{"error":"unauthorized","signin_url":"https://ollama.com/connect?name=h&key=k"}"#;
    let script = || whole("401 Unauthorized", "content-type: application/json\r\n", body);
    check(
        script(),
        "!auth: HOST answered 401 Unauthorized: unauthorized; run `ollama signin` (check the API key and its rights)",
    )
    .await;
    check_with(
        script(),
        |ollama| ollama.with_api_key("key-123456789"),
        "!auth: HOST answered 401 Unauthorized: unauthorized (check the API key and its rights)",
    )
    .await;
}

#[tokio::test]
async fn a_refusal_says_how_long_to_wait() {
    let limit = r#"{"error":"you have reached your session usage limit"}"#;
    let refused = |headers: &str| whole("429 Too Many Requests", headers, limit);
    let error = failure(refused("retry-after: 7\r\ncontent-type: application/json\r\n")).await;
    assert_eq!((error.kind(), error.status()), (ErrorKind::RateLimited, Some(429)));
    assert!(error.is_retryable());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert!(
        error
            .to_string()
            .ends_with(" answered 429 Too Many Requests: you have reached your session usage limit")
    );
    assert_eq!(failure(refused("")).await.retry_after(), None);
}

#[tokio::test]
async fn refusals_are_read_whatever_they_are() {
    check(
        refused("400 Bad Request", "\"llama3.2\" does not support thinking"),
        "!invalid_request: HOST answered 400 Bad Request: \"llama3.2\" does not support thinking",
    )
    .await;
    check(
        refused("400 Bad Request", "the input length exceeds the context length"),
        "!context_overflow: HOST answered 400 Bad Request: the input length exceeds the context length",
    )
    .await;
    check(
        refused("403 Forbidden", "this model requires a subscription, upgrade for access: https://ollama.com/upgrade"),
        "!auth: HOST answered 403 Forbidden: this model requires a subscription, upgrade for access: https://ollama.com/upgrade (check the API key and its rights)",
    )
    .await;
    check(
        refused("500 Internal Server Error", "llama runner process has terminated: exit status 2"),
        "!server_error: HOST answered 500 Internal Server Error: llama runner process has terminated: exit status 2",
    )
    .await;
    check(
        refused("503 Service Unavailable", "server busy, please try again.  maximum pending requests exceeded"),
        "!overloaded: HOST answered 503 Service Unavailable: server busy, please try again. maximum pending requests exceeded",
    )
    .await;
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
async fn a_key_is_never_repeated() {
    for script in [
        refused("401 Unauthorized", "wrong key-123456789"),
        lines(&[r#"{"error":"wrong key-123456789"}"#]),
        lines(&["key-123456789"]),
        whole("200 OK", "content-type: application/json\r\n", "key-123456789"),
        whole("200 OK", "content-type: text/html\r\n", "key-123456789"),
    ] {
        let server = Server::start(vec![script]).await;
        let ollama = ollama(&server).with_api_key("key-123456789");
        let answer = answer(ollama.stream(question())).await;
        assert!(answer.contains("[secret]") && !answer.contains("key-1"), "{answer}");
    }
}

#[tokio::test]
async fn no_server_is_said_with_what_to_check() {
    let server = Server::start(vec![]).await;
    let (ollama, host) = (ollama(&server), server.host());
    drop(server);
    tokio::task::yield_now().await;
    let error = ollama.stream(question()).next().await.unwrap().unwrap_err();
    let said = error.to_string().replace(&host, "HOST");
    assert!(said.starts_with("HOST can't be reached: Connection refused"), "{said}");
    assert!(said.ends_with("; is the server running, and is the base URL right?"), "{said}");
    assert!(error.is_retryable() && std::error::Error::source(&error).is_some());
}

#[tokio::test]
async fn an_answer_of_one_piece_is_said_to_be_one() {
    let json = |body: &str| whole("200 OK", "content-type: application/json; charset=utf-8\r\n", body);
    let said = "(HOST answered in one piece although asked to stream)";
    check(json(&TEXT.replace("false", "true")), &format!("{said} Hi |stop")).await;
    check(json("{}"), "!protocol: HOST sent what is no answer of Ollama: it has no message: {}").await;
    let mut cut = json(TEXT);
    cut[1] = Step::Send(b"{\"message\"".to_vec());
    check(
        cut,
        "!transport: HOST was cut off before its answer was complete: end of file before message length reached",
    )
    .await;
}

#[tokio::test]
async fn streaming_can_be_switched_off() {
    let body = TEXT.replace("false", "true");
    let mut server = Server::start(vec![whole("200 OK", "content-type: application/json\r\n", &body)]).await;
    let mut options = ModelOptions::new();
    options.extra.insert("stream".into(), Value::Bool(false));
    let request = ModelRequest { options: Arc::new(options), ..question() };
    assert_eq!(answer(ollama(&server).stream(request)).await, "(`stream` is set to false) Hi |stop");
    assert!(server.request().await.contains("\"stream\":false"));
}

#[tokio::test]
async fn garbage_is_quoted() {
    check(
        whole("200 OK", "content-type: text/html\r\n", "<html>\n  Welcome to nginx!"),
        "!protocol: HOST answered with text/html, which is no answer of Ollama (check the base URL): <html> Welcome to nginx!",
    )
    .await;
    check(
        lines(&[TEXT, "nonsense"]),
        "Hi !protocol: HOST sent what is no answer of Ollama: expected ident at line 1 column 2: nonsense",
    )
    .await;
    check(
        lines(&[TEXT, r#"{"error":"an error was encountered while running the model"}"#, DONE]),
        "Hi !server_error: HOST broke off its answer: an error was encountered while running the model",
    )
    .await;
}

#[tokio::test]
async fn one_connection_serves_one_call_after_another() {
    let mut script = lines(&[TEXT, DONE]);
    script.push(Step::Next);
    script.extend(lines(&[TEXT, DONE]));
    let mut server = Server::start(vec![script.clone(), script]).await;
    let ollama = ollama(&server);
    for model in ["qwen3", "gemma3"] {
        assert_eq!(answer(ollama.clone().with_model(model).stream(question())).await, "Hi |stop");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(server.next().await, Seen::Connected);
    server.next().await;
    assert!(matches!(server.next().await, Seen::Request(_)), "no second connection");
}

#[tokio::test]
async fn a_conversation_the_api_has_no_form_for_is_not_sent() {
    let mut server = Server::start(vec![lines(&[DONE])]).await;
    let mut message = Message::user("Look");
    message.content.push(ContentBlock::Data {
        media_type: "image/png".into(),
        source: DataSource::Url("https://h/a.png".into()),
        opaque: Opaque::new(),
    });
    let request = ModelRequest { messages: vec![Arc::new(message)], ..ModelRequest::default() };
    let mut stream = ollama(&server).stream(request);
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(stream.next().await.is_none(), "an error is the last item");
    assert!(timeout(Duration::from_millis(30), server.next()).await.is_err());
}

#[tokio::test]
async fn the_last_delta_is_the_reason_to_stop() {
    let done = r#"{"message":{"content":""},"done":true,"done_reason":"length","prompt_eval_count":3,"eval_count":1}"#;
    let server = Server::start(vec![lines(&[TEXT, done])]).await;
    let deltas: Vec<_> = ollama(&server).stream(question()).map(Result::unwrap).collect().await;
    assert_eq!(deltas[1], ModelDelta::Usage(Usage::new(3, 1)));
    assert_eq!(deltas[2..], [ModelDelta::Stop(StopReason::Length)]);
}
