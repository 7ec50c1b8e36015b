//! Every failure.

use std::{error::Error, time::Duration};

use futures_util::StreamExt;
use mainstem_http::{Api, Form};
use mainstem_model::{ErrorKind, Model};

use super::{KEY, Sample, check, failure, model, question, streamed};
use crate::raw::{Server, Step, whole};

/// A response that breaks off is an error.
pub async fn a_cut_is_an_error<A: Api>(sample: Sample) {
    let cut = "!transport: HOST was cut off before its answer was complete:";
    let mut script = streamed::<A>(&[sample.text]);
    script.pop();
    check::<A>(script.clone(), &format!("Hi {cut} unexpected EOF during chunk size line")).await;
    for half in halves(sample) {
        let prefix = if A::FORM == Form::Events { "data: " } else { "" };
        let torn = Step::Send([b"fff\r\n", prefix.as_bytes(), &half].concat());
        let script = [&script[..], &[torn]].concat();
        check::<A>(script, &format!("Hi {cut} end of file before message length reached")).await;
    }
    let (call, shown) = sample.call;
    let mut script = streamed::<A>(call);
    script.pop();
    check::<A>(script, &format!("{shown} {cut} unexpected EOF during chunk size line")).await;

    let ended = "!transport: HOST ended the connection before its answer was complete";
    check::<A>(streamed::<A>(call), &format!("{shown} {ended}")).await;
    check::<A>(streamed::<A>(&[sample.text]), &format!("Hi {ended}")).await;
    check::<A>(streamed::<A>(&[]), ended).await;
    let silent = "!transport: HOST did not answer: connection closed before message completed";
    check::<A>(vec![], silent).await;
}

/// Returns the beginnings of payloads, up to the middle of a delta, of a character, and of a call.
fn halves(sample: Sample) -> [Vec<u8>; 3] {
    let word = sample.text.find("Hi").unwrap();
    let character = sample.text.replace("Hi", "é").into_bytes();
    let call = sample.call.0.last().unwrap().as_bytes();
    [sample.text[..=word].into(), character[..=word].to_vec(), call[..call.len() * 3 / 4].to_vec()]
}

/// The kind of a refusal, its message, and the time to wait.
pub async fn a_refusal_says_how_long_to_wait<A: Api>(sample: Sample) {
    let body = sample.error("Slow down");
    let refused = |headers: &str| whole("429 Too Many Requests", headers, &body);
    let error = failure::<A>(refused("retry-after: 7\r\ncontent-type: application/json\r\n")).await;
    assert_eq!((error.kind(), error.status()), (ErrorKind::RateLimited, Some(429)));
    assert!(error.is_retryable());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert!(error.to_string().ends_with(" answered 429 Too Many Requests: Slow down"), "{error}");
    assert_eq!(failure::<A>(refused("")).await.retry_after(), None);
    let error = failure::<A>(refused("retry-after-ms: 1500\r\n")).await;
    assert_eq!(error.retry_after(), Some(Duration::from_millis(1500)));
}

/// A refusal is quoted in any form, from proxies, too.
pub async fn refusals_are_read_whatever_they_are<A: Api>(sample: Sample) {
    let html = "content-type: text/html\r\n";
    check::<A>(
        whole("502 Bad Gateway", html, "<h1>Bad\r\n gateway</h1>"),
        "!server_error: HOST answered 502 Bad Gateway: <h1>Bad gateway</h1>",
    )
    .await;
    check::<A>(
        whole("400 Bad Request", "", &sample.error("No such thing")),
        "!invalid_request: HOST answered 400 Bad Request: No such thing",
    )
    .await;
    check::<A>(
        whole("307 Temporary Redirect", "location: http://elsewhere/\r\n", ""),
        "!invalid_request: HOST answered 307 Temporary Redirect (set the base URL to where it points; redirects are not followed)",
    )
    .await;
    // A body that breaks off is read as far as it goes.
    let mut script = whole("500 Internal Server Error", "", "sorry and more");
    script[1] = Step::Send(b"sorry".to_vec());
    check::<A>(script, "!server_error: HOST answered 500 Internal Server Error: sorry").await;
}

/// Without a server, the error names the address.
pub async fn an_unreachable_server_is_named_with_advice<A: Api>(_: Sample) {
    let server = Server::start(vec![]).await;
    let (model, host) = (model::<A>(&server), server.host());
    drop(server);
    tokio::task::yield_now().await;
    let error = model.stream(question()).next().await.unwrap().unwrap_err();
    let said = error.to_string().replace(&host, "HOST");
    assert!(said.starts_with("HOST can't be reached: Connection refused"), "{said}");
    assert!(said.ends_with("; is the server running, and is the base URL right?"), "{said}");
    assert!(error.is_retryable() && error.source().is_some());
}

/// Data that is not of the API is quoted; an error in the middle of a response is the call's error.
pub async fn garbage_is_quoted<A: Api>(sample: Sample) {
    let noun = A::RESPONSE_NOUN;
    check::<A>(
        whole("200 OK", "content-type: text/html\r\n", "<html>\n  Welcome to nginx!"),
        &format!(
            "!protocol: HOST answered with text/html, which is no {noun} (check the base URL): <html> Welcome to nginx!"
        ),
    )
    .await;
    let other = if A::FORM == Form::Events { "application/x-ndjson" } else { "text/event-stream" };
    check::<A>(
        whole("200 OK", &format!("content-type: {other}\r\n"), "{\"done\":true}\n"),
        &format!(
            "!protocol: HOST answered with {other}, which is no {noun} (check the base URL): {{\"done\":true}}"
        ),
    )
    .await;
    check::<A>(
        streamed::<A>(&[sample.text, "nonsense"]),
        &format!("Hi !protocol: HOST sent what is no {noun}: expected ident at line 1 column 2: nonsense"),
    )
    .await;
    let error = sample.error("Out of memory");
    let payloads = [&[sample.text, &error], sample.end].concat();
    check::<A>(streamed::<A>(&payloads), "Hi !server_error: HOST broke off its answer: Out of memory").await;
}

/// A key that a server repeats is redacted at every place.
pub async fn the_key_is_nowhere_to_be_seen<A: Api>(sample: Sample) {
    let echo = sample.error(&format!("wrong {KEY}"));
    let auth = "(check the API key and its rights)";
    let refused = whole("401 Unauthorized", "content-type: application/json\r\n", &echo);
    check::<A>(refused, &format!("!auth: HOST answered 401 Unauthorized: wrong [secret] {auth}")).await;
    check::<A>(streamed::<A>(&[&echo]), "!server_error: HOST broke off its answer: wrong [secret]").await;
    for media_type in ["application/json", "text/html"] {
        let quoted = whole("200 OK", &format!("content-type: {media_type}\r\n"), KEY);
        assert!(failure_or_last::<A>(quoted).await.ends_with("[secret]"), "{media_type}");
    }
    assert!(failure_or_last::<A>(streamed::<A>(&[&format!("{{{KEY}")])).await.ends_with("{[secret]"));
    // Redacted before it is cut, so that no part of a secret is left.
    let edge = sample.error(&format!("{} {KEY}", "x".repeat(195)));
    let error = failure::<A>(whole("400 Bad Request", "", &edge)).await.to_string();
    assert!(!error.contains("key-1") && error.ends_with("x [sec…"), "{error}");
}

/// Returns the last delta in short, which is the error.
async fn failure_or_last<A: Api>(script: Vec<Step>) -> String {
    let server = Server::start(vec![script]).await;
    let shown = super::answer(model::<A>(&server).stream(question())).await;
    assert!(shown.contains('!') && !shown.contains(KEY), "{shown}");
    shown
}
