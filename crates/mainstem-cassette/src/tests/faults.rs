//! Errors of the vendor, of connections, and of the tape.

use super::*;

/// Checks what the client sees of this script, recorded and then replayed.
async fn check(script: Vec<Step>, end: &str) {
    let (tapes, vendor) = (Tapes::new(), Server::start(vec![script]).await);
    let cassette = tapes.open(&vendor.url(), Mode::Record).await;
    let recorded = ask(&cassette, "{}").await;
    assert!(recorded.ends_with(end) && !recorded.contains("0\r\n\r\n"), "{recorded:?}");
    cassette.finish().await.unwrap();
    assert!(tapes.text().contains(r#""end":"cut""#), "{}", tapes.text());
    drop(vendor);
    let cassette = tapes.replay().await;
    assert_eq!(ask(&cassette, "{}").await, recorded);
    cassette.finish().await.unwrap();
}

#[tokio::test]
async fn what_was_cut_is_cut_again_at_the_same_place() {
    let head = || raw::head("200 OK", CHUNKED);
    check(vec![], "").await;
    check(vec![head()], "\r\n\r\n").await;
    check(vec![head(), raw::chunk(b"da"), raw::chunk(b"ta: \xc3")], "5\r\nta: \u{fffd}\r\n").await;
    let short_of_its_length = raw::head("200 OK", "content-length: 10\r\n");
    check(vec![short_of_its_length, Step::Send(b"half".to_vec())], "4\r\nhalf\r\n").await;
}

#[tokio::test]
async fn a_refusal_is_recorded_with_the_headers_that_matter() {
    let headers = "content-type: application/json\r\nretry-after: 7\r\nx-ratelimit-remaining-tokens: 0\r\nrequest-id: r1\r\n\
                   set-cookie: a=secret-cookie\r\nopenai-organization: org-1\r\n";
    let script = raw::whole("429 Too Many Requests", headers, "{\"error\":\"slow down\"}");
    let (tapes, vendor) = (Tapes::new(), Server::start(vec![script]).await);
    let cassette = tapes.open(&vendor.url(), Mode::Record).await;
    let recorded = ask(&cassette, "{}").await;
    for header in ["retry-after: 7\r\n", "x-ratelimit-remaining-tokens: 0\r\n", "request-id: r1\r\n"] {
        assert!(recorded.starts_with("HTTP/1.1 429 ") && recorded.contains(header), "{recorded}");
    }
    assert!(
        !recorded.contains("secret-cookie") && !recorded.contains("org-1"),
        "as it will be when it is replayed"
    );
    cassette.finish().await.unwrap();
    assert!(!tapes.text().contains("secret-cookie") && !tapes.text().contains("org-1"), "{}", tapes.text());
    let cassette = tapes.replay().await;
    assert_eq!(ask(&cassette, "{}").await, recorded);
    cassette.finish().await.unwrap();
}

#[tokio::test]
async fn a_vendor_that_is_not_there_is_no_response() {
    let tapes = Tapes::new();
    let cassette = tapes.open("http://127.0.0.1:1", Mode::Record).await;
    let response = ask(&cassette, "{}").await;
    assert!(response.starts_with("HTTP/1.1 502 ") && response.contains("refused"), "{response}");
    cassette.finish().await.unwrap();
    assert_eq!(tapes.text(), "", "nothing to replay");

    let cassette = tapes.open("http://127.0.0.1:1", Mode::Auto).await;
    let response = ask(&cassette, "{}").await;
    assert!(
        response.starts_with("HTTP/1.1 417 ") && response.contains("the vendor can't be reached"),
        "{response}"
    );
    assert!(matches!(cassette.finish().await, Err(CassetteError::Missed { .. })));
}

/// Checks why the response to `{}` is not on the tape.
async fn unfit(mode: Mode, script: Vec<Step>, expected: &str) {
    let (tapes, vendor) = (Tapes::new(), Server::start(vec![script]).await);
    let cassette = tapes.open(&vendor.url(), mode).await;
    assert!(ask(&cassette, "{}").await.contains("it goes on"));
    let error = cassette.finish().await.unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert_eq!(tapes.text(), "");
}

#[tokio::test]
async fn some_responses_are_not_recorded_which_is_said() {
    unfit(Mode::Auto, raw::whole("401 No", "", "it goes on"), "POST /v1/chat: it is 401 Unauthorized").await;
    let compressed = raw::whole("200 OK", "content-encoding: gzip\r\n", "it goes on");
    unfit(Mode::Record, compressed, "it is compressed").await;
    let long = raw::whole("200 OK", "", &"it goes on".repeat(2 << 20));
    unfit(Mode::Record, long, "it is longer than 16777216 bytes").await;
}

#[tokio::test]
async fn a_request_has_a_limit() {
    let tapes = Tapes::new();
    let cassette = tapes.open("http://127.0.0.1:1", Mode::Off).await;
    let url = format!("{}/v1", cassette.url());
    let response = mainstem_http::client().unwrap().post(url).body(vec![b'x'; 17 << 20]).send().await;
    // The rest of a request that is refused before its end need not be read.
    assert!(response.is_err() || response.is_ok_and(|response| response.status() == 413));
    let error = cassette.finish().await.unwrap_err().to_string();
    assert!(error.contains("longer than 16777216 bytes"), "{error}");
}

#[tokio::test]
async fn a_tape_that_is_none_is_not_played() {
    let tapes = Tapes::new();
    let error = tapes.builder("http://x", Mode::Replay).open().await.unwrap_err().to_string();
    assert!(error.starts_with("there is no tape ") && error.ends_with("MAINSTEM_CASSETTE=record"), "{error}");
    fs::create_dir(tapes.path().parent().unwrap()).unwrap();
    fs::write(tapes.path(), "{\"mainstem_cassette\":1}\nwhat?\n").unwrap();
    for mode in [Mode::Auto, Mode::Replay] {
        let error = tapes.builder("http://x", mode).open().await.unwrap_err().to_string();
        assert!(error.contains("tape.jsonl:2:1: invalid line"), "{error}");
    }
}

#[tokio::test]
async fn settings_that_can_not_be_used_are_said() {
    let check = async |builder: CassetteBuilder, expected: &str| {
        let error = builder.open().await.unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("a-password"), "{error}");
    };
    let tapes = Tapes::new();
    let builder = |upstream: &str| tapes.builder(upstream, Mode::Record);
    check(builder("api.openai.com"), "it must begin with http:// or https://").await;
    check(builder("http://me:a-password@x"), "neither user, password nor query").await;
    check(builder("http://x?key=a-password"), "neither user, password nor query").await;
    check(builder("http://x").with_ignored("user"), "is not a JSON pointer").await;
}
