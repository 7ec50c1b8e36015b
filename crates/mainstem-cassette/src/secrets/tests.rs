//! Secrets in every place and encoding, and the texts without them.

use serde_json::json;

use super::*;
use crate::{exchange::End, format};

fn secrets(values: &[&str]) -> Secrets {
    let mut secrets = Secrets::default();
    values.iter().for_each(|value| secrets.add(value));
    secrets
}

fn response(chunks: &[&str]) -> TapeResponse {
    let chunks = chunks.iter().zip(1..).map(|(text, ms)| Chunk { ms, bytes: text.as_bytes().to_vec() });
    TapeResponse { status: Some(200), headers: [].into(), chunks: chunks.collect(), end: End::Complete }
}

/// Checks the chunks of a response without `sk-123456`, with the milliseconds of each.
fn check(chunks: &[&str], expected: &[(u64, &str)]) {
    let mut response = response(chunks);
    secrets(&["sk-123456"]).redact_response(&mut response);
    let left = response.chunks.iter().map(|chunk| (chunk.ms, std::str::from_utf8(&chunk.bytes).unwrap()));
    assert_eq!(left.collect::<Vec<_>>(), expected, "{chunks:?}");
}

#[test]
fn a_secret_in_a_response_is_replaced_also_over_chunks() {
    check(&["no ", "key"], &[(1, "no "), (2, "key")]);
    check(&["a sk-123456 b", "c"], &[(1, "a [redacted] b"), (2, "c")]);
    check(&["a sk-12", "3456 b"], &[(1, "a [redacted]"), (2, " b")]);
    check(&["sk", "-1", "234", "56"], &[(1, "[redacted]")]);
    check(&["a s", "k-123456", " b"], &[(1, "a [redacted]"), (5, " b")]);
    check(&["sk-123456sk-1", "23456, sk-123456"], &[(1, "[redacted][redacted]"), (2, ", [redacted]")]);
    check(&["sk-1sk-123456", "sk-123"], &[(1, "sk-1[redacted]"), (2, "sk-123")]);
}

#[test]
fn every_form_of_a_secret_is_found() {
    let check = |text: &str, expected: &str| {
        let mut text = text.to_owned();
        secrets(&["p\"w/ü d"]).redact_text(&mut text);
        assert_eq!(text, expected);
    };
    check("p\"w/ü d", REDACTED);
    check(r#"{"a":"p\"w/ü d"}"#, r#"{"a":"[redacted]"}"#);
    check(r#"{"arguments":"{\"a\":\"p\\\"w/ü d\"}"}"#, r#"{"arguments":"{\"a\":\"[redacted]\"}"}"#);
    check("/x?y=p%22w%2F%C3%BC%20d", "/x?y=[redacted]");
    check("p\"w/ü", "p\"w/ü");
}

#[test]
fn keys_are_learned_from_headers_and_query() {
    let check = |name: &'static str, value: &'static str, query: &str, expected: &str| {
        let mut secrets = Secrets::default();
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
        secrets.learn(&headers, &Url::parse(&format!("http://x/y?{query}")).unwrap());
        let mut text = "a-bearer-key, x-key+1234, Bearer, tiny".to_owned();
        secrets.redact_text(&mut text);
        assert_eq!(text, expected, "{name}: {value}, {query}");
    };
    let bearer = "[redacted], x-key+1234, Bearer, tiny";
    check("authorization", "Bearer a-bearer-key", "", bearer);
    check("proxy-authorization", "Basic a-bearer-key", "", bearer);
    for header in ["x-api-key", "api-key", "x-goog-api-key", "x-my-token", "cookie"] {
        check(header, "a-bearer-key", "", bearer);
    }
    check("cookie", "a=a-bearer-key; b=x-key+1234", "", "[redacted], [redacted], Bearer, tiny");
    check("accept", "a-bearer-key", "", "a-bearer-key, x-key+1234, Bearer, tiny");
    check("accept", "*/*", "alt=sse&KEY=x-key%2B1234", "a-bearer-key, [redacted], Bearer, tiny");
    // Local servers accept any key; a word like theirs is not a secret.
    check("authorization", "Bearer tiny", "", "a-bearer-key, x-key+1234, Bearer, tiny");
}

#[test]
fn a_request_shows_none() {
    let mut requested = TapeRequest {
        method: "POST".into(),
        path: "/sk-123456/x?alt=sse&key=short&Api_Key=sk-9&flag".into(),
        headers: [("accept".into(), "sk-123456".into())].into(),
        body: Some(Body::Json(json!({"sk-123456": ["my key is sk-123456.", 1, null]}))),
    };
    secrets(&["sk-123456"]).redact_request(&mut requested);
    assert_eq!(requested.path, "/[redacted]/x?alt=sse&key=[redacted]&Api_Key=[redacted]&flag");
    assert_eq!(requested.headers["accept"], REDACTED);
    assert_eq!(requested.body, Some(Body::Json(json!({"[redacted]": ["my key is [redacted].", 1, null]}))));
}

#[test]
fn what_is_left_is_noticed() {
    let check = |secret: &str, body: &[u8], chunks: &[&str], expected: bool| {
        let request =
            TapeRequest { method: "POST".into(), path: "/".into(), headers: [].into(), body: Body::of(body) };
        let mut exchange = Exchange { request, response: response(chunks) };
        let secrets = secrets(&[secret]);
        secrets.redact_request(&mut exchange.request);
        secrets.redact_response(&mut exchange.response);
        assert_eq!(secrets.are_in(&exchange, &format::encode(&exchange)), expected, "{secret}");
    };
    check("sk-123456", b"{\"a\": \"sk-123456\"}", &["sk-12", "3456"], false);
    // A part of every line, and of its replacement.
    check("method", b"", &[], true);
    check("redact", b"\"redact\"", &[], true);
    // Bytes that are not text stay.
    check("sk-123456", b"\xffsk-123456", &[], true);
    check("sk-123456", b"\xffsk-12345", &[], false);
}

#[test]
fn they_are_not_shown() {
    assert_eq!(format!("{:?}", secrets(&["sk-123456"])), "Secrets(…)");
}
