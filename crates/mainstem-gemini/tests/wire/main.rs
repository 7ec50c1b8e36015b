//! The provider against a scripted server: what is sent, what arrives when, and every way to fail.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mainstem_testing::raw::{Seen, Server, Step, events, head, whole};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use mainstem_gemini::Gemini;
use mainstem_message::{ContentBlock, Message, Opaque, Role, ToolCall, ToolResult, ToolState, Usage};
use mainstem_model::{
    ErrorKind, Model, ModelDelta, ModelError, ModelRequest, ModelStream, Retry, RetryPolicy,
};
use tokio::time::timeout;

const KEY: &str = "AIza-123456789";
const TEXT: &str = r#"{"candidates": [{"content": {"parts": [{"text": "Hi"}],"role": "model"},"index": 0}]}"#;
const CALL: &str = r#"{"candidates": [{"content": {"parts": [{"functionCall": {"name": "f","args": {"a": 1}}}],"role": "model"},"index": 0}]}"#;
const STOP: &str = r#"{"candidates": [{"content": {"parts": [{"text": ""}],"role": "model"},"finishReason": "STOP","index": 0}]}"#;

fn gemini(server: &Server) -> Gemini {
    Gemini::new("gemini-test").with_base_url(&server.url()).unwrap().with_api_key(KEY)
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
        Ok(ModelDelta::CallStart { name, .. }) => format!("+{name}"),
        Ok(ModelDelta::CallArguments { delta, .. }) => delta,
        Ok(ModelDelta::CallEnd { .. }) => ".".to_owned(),
        Ok(ModelDelta::NotStreaming { reason }) => format!("({reason})"),
        Ok(ModelDelta::Retry { attempt, wait, .. }) => format!("(again after {attempt}, {wait:?})"),
        Ok(ModelDelta::Stop(reason)) => format!("|{reason}"),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("!{}: {error}", error.kind().code()),
    }
}

/// What one call yields when the server plays this script; `HOST` stands for the server.
async fn check(script: Vec<Step>, expected: &str) {
    let server = Server::start(vec![script]).await;
    let answer = answer(gemini(&server).stream(question())).await;
    assert!(!answer.contains(KEY), "{answer}");
    assert_eq!(answer.replace(&server.host(), "HOST"), expected);
}

/// The error of one call.
async fn failure(script: Vec<Step>) -> ModelError {
    let server = Server::start(vec![script]).await;
    gemini(&server).stream(question()).next().await.unwrap().unwrap_err()
}

/// A response of one piece, as Google sends its errors.
fn refused(status: &str, body: &str) -> Vec<Step> {
    whole(status, "content-type: application/json; charset=UTF-8\r\n", body)
}

#[tokio::test]
async fn a_delta_arrives_before_the_server_goes_on() {
    let mut script = events(&[TEXT]);
    script.insert(2, Step::AwaitClose);
    let mut server = Server::start(vec![script]).await;
    let mut stream = gemini(&server).stream(question());
    assert_eq!(stream.next().await.unwrap().unwrap(), ModelDelta::Text("Hi".into()));
    assert!(timeout(Duration::from_millis(50), stream.next()).await.is_err(), "the rest has not been sent");

    // Dropping the stream closes the connection.
    server.request().await;
    let dropped = Instant::now();
    drop(stream);
    assert_eq!(server.next().await, Seen::Closed);
    assert!(dropped.elapsed() < Duration::from_millis(500), "{:?}", dropped.elapsed());
}

#[tokio::test]
async fn dropping_a_call_that_waits_closes_the_connection() {
    let mut server = Server::start(vec![vec![Step::AwaitClose]]).await;
    let mut stream = gemini(&server).stream(question());
    tokio::select! {
        delta = stream.next() => panic!("no answer yet: {delta:?}"),
        _ = server.request() => {}
    }
    drop(stream);
    assert_eq!(server.next().await, Seen::Closed);
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_poll() {
    let mut server = Server::start(vec![events(&[STOP])]).await;
    let stream = gemini(&server).stream(question());
    assert!(timeout(Duration::from_millis(30), server.next()).await.is_err());
    assert_eq!(answer(stream).await, "|stop");
    assert_eq!(server.next().await, Seen::Connected);
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

#[tokio::test]
async fn a_client_of_ones_own_is_used() {
    let mut server = Server::start(vec![events(&[STOP])]).await;
    // Ours installs the crypto provider that every client needs.
    answer(Gemini::new("m").with_base_url("http://127.0.0.1:1").unwrap().stream(question())).await;
    let client = mainstem_http::Client::builder().user_agent("mine").build().unwrap();
    answer(gemini(&server).with_client(client).stream(question())).await;
    assert!(server.request().await.contains("\r\nuser-agent: mine\r\n"));
}

/// What a model says goes back to it as it was said: here a call of Gemini 3, with its id and its signature.
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
    check(events(&[TEXT, STOP]), "Hi |stop").await;
    check(events(&[TEXT, CALL, STOP]), r#"Hi +f {"a": 1} . |tool_calls"#).await;
    check(events(&[TEXT, STOP, "[DONE]", "garbage"]), "Hi |stop").await;
    let mut cut = events(&[TEXT, STOP]);
    cut.pop();
    check(cut, "Hi |stop").await;
}

#[tokio::test]
async fn the_last_delta_is_the_reason_to_stop() {
    let usage = r#"{"candidates": [{"finishReason": "STOP"}],"usageMetadata": {"promptTokenCount": 3,"candidatesTokenCount": 1}}"#;
    let server = Server::start(vec![events(&[usage, TEXT])]).await;
    let deltas: Vec<_> = gemini(&server).stream(question()).map(Result::unwrap).collect().await;
    assert_eq!(deltas[1], ModelDelta::Usage(Usage::new(3, 1)));
    assert_eq!(deltas[2..], [ModelDelta::Stop(mainstem_message::StopReason::Stop)]);
}

#[tokio::test]
async fn a_cut_is_an_error() {
    let cut = "!transport: HOST was cut off before its answer was complete:";
    let mut script = events(&[TEXT]);
    script.pop();
    check(script.clone(), &format!("Hi {cut} unexpected EOF during chunk size line")).await;
    // In the middle of a delta, of a character, of a call's arguments.
    let middle = "end of file before message length reached";
    let torn = |bytes: &[u8]| {
        let mut script = script.clone();
        let mut chunk = b"200\r\ndata: ".to_vec();
        chunk.extend_from_slice(bytes);
        script.push(Step::Send(chunk));
        script
    };
    check(torn(br#"{"candidates": [{"con"#), &format!("Hi {cut} {middle}")).await;
    let character = TEXT.replace("Hi", "é");
    let within = character.find('é').unwrap() + 1;
    check(torn(&character.as_bytes()[..within]), &format!("Hi {cut} {middle}")).await;
    let arguments = CALL.find(r#"{"a""#).unwrap() + 3;
    check(torn(&CALL.as_bytes()[..arguments]), &format!("Hi {cut} {middle}")).await;

    let ended = "!transport: HOST ended the connection before its answer was complete";
    check(events(&[TEXT]), &format!("Hi {ended}")).await;
    check(events(&[CALL]), &format!(r#"+f {{"a": 1}} . {ended}"#)).await;
    check(events(&[]), ended).await;
    check(vec![], "!transport: HOST did not answer: connection closed before message completed").await;
}

#[tokio::test]
async fn events_may_be_torn_apart() {
    let frame = format!("data: {}\r\n\r\n", TEXT.replace("Hi", "Hé"));
    let mut script = vec![head("200 OK", "content-type: text/event-stream\r\nconnection: close\r\n")];
    for byte in frame.bytes() {
        script.extend([Step::Send(vec![byte]), Step::Pause(Duration::from_micros(100))]);
    }
    // The last event has no blank line after it, and no length tells where the body ends.
    script.push(Step::Send(format!("data: {STOP}").into_bytes()));
    check(script, "Hé |stop").await;
}

#[tokio::test]
async fn the_form_without_events_is_read_when_it_is_complete() {
    let body = include_str!("../fixtures/array.body");
    let json = |body: &str| whole("200 OK", "content-type: application/json; charset=UTF-8\r\n", body);
    let said = "(HOST answered in one piece although asked to stream)";
    let usage = Usage::new(5, 4);
    check(json(body), &format!("{said} One,  two. {:?} |stop", ModelDelta::Usage(usage))).await;
    check(json("[]"), "!protocol: HOST sent what is no Gemini response: it has no candidates: []").await;
    check(
        json(r#"[{"error": {"code": 503,"message": "overloaded","status": "UNAVAILABLE"}}]"#),
        "!overloaded: HOST broke off its answer: overloaded",
    )
    .await;
}

#[tokio::test]
async fn a_refusal_says_how_long_to_wait() {
    let body = include_str!("../fixtures/rate_limited.body");
    let error = failure(refused("429 Too Many Requests", body)).await;
    assert_eq!((error.kind(), error.status()), (ErrorKind::RateLimited, Some(429)));
    assert!(error.is_retryable());
    assert_eq!(error.retry_after(), Some(Duration::from_nanos(34_074_824_224)));
    assert!(error.to_string().contains(" answered 429 Too Many Requests: You exceeded"), "{error}");
    // A header is the better word.
    let error = failure(whole("429 Too Many Requests", "retry-after: 7\r\n", body)).await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert_eq!(failure(refused("429 Too Many Requests", "")).await.retry_after(), None);
}

#[tokio::test]
async fn refusals_are_read_whatever_they_are() {
    check(
        refused("400 Bad Request", include_str!("../fixtures/invalid_key.body")),
        "!auth: HOST answered 400 Bad Request: API key not valid. Please pass a valid API key. (check the API key and its rights)",
    )
    .await;
    check(
        refused(
            "401 Unauthorized",
            &format!(r#"{{"error":{{"code":401,"message":"No {KEY}","status":"UNAUTHENTICATED"}}}}"#),
        ),
        "!auth: HOST answered 401 Unauthorized: No [secret] (check the API key and its rights)",
    )
    .await;
    check(
        refused("404 Not Found", r#"{"error":{"code":404,"message":"models/m is not found for API version v1beta","status":"NOT_FOUND"}}"#),
        "!not_found: HOST answered 404 Not Found: models/m is not found for API version v1beta (check the model's name and the base URL)",
    )
    .await;
    // An error may come with the type of a stream, and as an array.
    check(
        whole(
            "503 Service Unavailable",
            "content-type: text/event-stream\r\n",
            r#"[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]"#,
        ),
        "!overloaded: HOST answered 503 Service Unavailable: The model is overloaded.",
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
}

#[tokio::test]
async fn garbage_is_quoted() {
    check(
        whole("200 OK", "content-type: text/html\r\n", "<html>\n  Welcome to nginx!"),
        "!protocol: HOST answered with text/html, which is no Gemini response (check the base URL): <html> Welcome to nginx!",
    )
    .await;
    check(
        events(&[TEXT, "nonsense"]),
        "Hi !protocol: HOST sent what is no Gemini response: expected ident at line 1 column 2: nonsense",
    )
    .await;
    check(
        events(&[
            TEXT,
            r#"{"error": {"code": 500,"message": "An internal error has occurred","status": "INTERNAL"}}"#,
            STOP,
        ]),
        "Hi !server_error: HOST broke off its answer: An internal error has occurred",
    )
    .await;
}

#[tokio::test]
async fn no_server_is_said_with_what_to_check() {
    let server = Server::start(vec![]).await;
    let (gemini, host) = (gemini(&server), server.host());
    drop(server);
    tokio::task::yield_now().await;
    let error = gemini.stream(question()).next().await.unwrap().unwrap_err();
    let said = error.to_string().replace(&host, "HOST");
    assert!(said.starts_with("HOST can't be reached: Connection refused"), "{said}");
    assert!(error.is_retryable());
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
    assert_eq!(answer(again.stream(question())).await, "(again after 1, 1ms) Hi |stop");
}

#[tokio::test]
async fn a_conversation_the_api_has_no_form_for_is_not_sent() {
    let mut server = Server::start(vec![events(&[STOP])]).await;
    let result = ToolResult {
        tool_call_id: "nowhere".into(),
        name: "f".into(),
        content: vec![],
        state: ToolState::Success,
    };
    let message = Message::new(Role::Tool, vec![ContentBlock::ToolResult(result)]);
    let request = ModelRequest { messages: vec![Arc::new(message)], ..ModelRequest::default() };
    let mut stream = gemini(&server).stream(request);
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(stream.next().await.is_none(), "an error is the last item");
    assert!(timeout(Duration::from_millis(30), server.next()).await.is_err());
}

#[tokio::test]
async fn one_connection_serves_one_call_after_another() {
    let mut script = events(&[TEXT, STOP]);
    script.push(Step::Next);
    script.extend(events(&[TEXT, STOP]));
    let mut server = Server::start(vec![script.clone(), script]).await;
    let gemini = gemini(&server);
    for _ in 0..2 {
        assert_eq!(answer(gemini.stream(question())).await, "Hi |stop");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(server.next().await, Seen::Connected);
    server.next().await;
    assert!(matches!(server.next().await, Seen::Request(_)), "no second connection");
}

#[tokio::test]
async fn what_is_kept_for_the_vendor_is_under_its_name() {
    let signed = TEXT.replace(r#""text": "Hi""#, r#""text": "Hi","thoughtSignature": "c2ln""#);
    let server = Server::start(vec![events(&[&signed, STOP])]).await;
    let deltas: Vec<_> = gemini(&server).stream(question()).map(Result::unwrap).collect().await;
    let ModelDelta::BlockEnd { opaque } = &deltas[1] else { panic!("{deltas:?}") };
    assert_eq!(Opaque::clone(opaque).keys().collect::<Vec<_>>(), ["gemini"]);
}
