//! Each mode: its requests, its responses, its tape, and its errors.

use std::io;

use tokio::net::TcpListener;

use super::*;

#[test]
fn modes_have_names() {
    let check = |text: &str, expected: Mode| assert_eq!(text.parse::<Mode>().unwrap(), expected);
    check("auto", Mode::Auto);
    check("record", Mode::Record);
    check(" replay\n", Mode::Replay);
    check("off", Mode::Off);
    let error = "on".parse::<Mode>().unwrap_err().to_string();
    assert_eq!(error, r#"MAINSTEM_CASSETTE is "on"; it must be auto, record, replay or off"#);
}

#[tokio::test]
async fn auto_plays_what_is_there_and_records_what_is_not() {
    let tapes = Tapes::new();
    for (responses, requested) in
        [(vec!["1"], vec!["\"a\""]), (vec!["2", "3"], vec!["\"b\"", "\"a\"", "\"a\""])]
    {
        let mut vendor = Server::start(responses.iter().map(|text| short(text)).collect()).await;
        let cassette = tapes.open(&vendor.url(), Mode::Auto).await;
        for body in requested {
            ask(&cassette, body).await;
        }
        cassette.finish().await.unwrap();
        for _ in responses {
            vendor.request().await;
        }
    }
    let cassette = tapes.replay().await;
    for (body, expected) in [("\"a\"", "1"), ("\"b\"", "2"), ("\"a\"", "3")] {
        assert_eq!(body_of(&cassette, body).await, expected);
    }
    cassette.finish().await.unwrap();
}

#[tokio::test]
async fn record_begins_anew() {
    let (tapes, vendor) = (Tapes::new(), Server::start(["1", "2"].map(short).to_vec()).await);
    for expected in ["1", "2"] {
        let cassette = tapes.open(&vendor.url(), Mode::Record).await;
        assert_eq!(body_of(&cassette, "{}").await, expected);
        cassette.finish().await.unwrap();
    }
    let before = tapes.text();
    assert!(before.lines().count() == 2 && before.contains(r#""text":"2""#), "{before}");
    // An empty recording leaves the old tape.
    tapes.open(&vendor.url(), Mode::Record).await.finish().await.unwrap();
    assert_eq!(tapes.text(), before);
}

#[tokio::test]
async fn replay_opens_no_connection_not_even_for_a_miss() {
    let (tapes, vendor) = (Tapes::new(), Server::start(vec![short("1")]).await);
    let cassette = tapes.open(&vendor.url(), Mode::Record).await;
    ask(&cassette, "{\"a\": 1}").await;
    cassette.finish().await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = format!("http://{}", listener.local_addr().unwrap());
    let cassette = tapes.open(&upstream, Mode::Replay).await;
    assert_eq!(body_of(&cassette, "{\"a\": 1}").await, "1");
    ask(&cassette, "{\"a\": 2}").await;
    assert!(timeout(ms(50), listener.accept()).await.is_err(), "there is no connection");
    assert!(cassette.finish().await.is_err());
}

#[tokio::test]
async fn off_leaves_the_tape_alone() {
    let (tapes, vendor) = (Tapes::new(), Server::start(vec![short("1")]).await);
    fs::create_dir(tapes.path().parent().unwrap()).unwrap();
    fs::write(tapes.path(), "no tape at all").unwrap();
    let cassette = tapes.open(&vendor.url(), Mode::Off).await;
    assert_eq!(body_of(&cassette, "{}").await, "1");
    cassette.finish().await.unwrap();
    assert_eq!(tapes.text(), "no tape at all");
}

/// Returns a tape with a response to `{"a": 1}`.
async fn taped() -> Tapes {
    let (tapes, vendor) = (Tapes::new(), Server::start(vec![short("1")]).await);
    let cassette = tapes.open(&vendor.url(), Mode::Record).await;
    ask(&cassette, "{\"a\": 1}").await;
    cassette.finish().await.unwrap();
    tapes
}

#[tokio::test]
async fn a_miss_says_what_differs_to_the_client_and_at_the_end() {
    let tapes = taped().await;
    let cassette = tapes.replay().await;
    let expected = "tape.jsonl has no response to POST /v1/chat (MAINSTEM_CASSETTE=record records anew): line 2 is nearest, but /a: recorded \
                    1, requested 2";
    let response = ask(&cassette, "{\"a\": 2}").await;
    let body = response.split_once("\r\n\r\n").unwrap().1;
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["error"]["message"], expected);
    let plain = ask(&cassette, "no JSON").await;
    assert!(
        plain.contains("text/plain") && plain.contains("the body: recorded {\"a\":1}, requested \"no JSON\""),
        "{plain}"
    );
    let error = cassette.finish().await.unwrap_err().to_string();
    assert_eq!(error.lines().next().unwrap(), expected);
    assert_eq!(error.lines().count(), 2, "{error}");
}

#[tokio::test]
#[should_panic(expected = "tape.jsonl has no response to POST /v1/chat")]
async fn a_test_that_swallows_a_miss_fails_all_the_same() {
    let tapes = taped().await;
    let cassette = tapes.replay().await;
    ask(&cassette, "{\"a\": 2}").await;
}

#[tokio::test]
async fn unused_responses_are_reported_unless_allowed() {
    let tapes = taped().await;
    let error = tapes.replay().await.finish().await.unwrap_err().to_string();
    assert!(error.contains("has unused responses") && error.contains("POST /v1/chat (line 2)"), "{error}");
    let lenient = tapes.builder("http://x", Mode::Replay).with_unused_allowed(true).open().await.unwrap();
    lenient.finish().await.unwrap();
    // A test that does not call `finish` may have failed otherwise.
    drop(tapes.replay().await);
}

#[tokio::test]
async fn a_cassette_that_is_dropped_ends_and_keeps_what_came() {
    let script = vec![raw::head("200 OK", CHUNKED), raw::chunk(b"first"), Step::AwaitClose];
    let (tapes, mut vendor) = (Tapes::new(), Server::start(vec![script]).await);
    let cassette = tapes.open(&vendor.url(), Mode::Record).await;
    let mut client = post(&cassette, "").await;
    until(&mut client, "first").await;
    let port = Url::parse(cassette.url()).unwrap().port().unwrap();
    vendor.request().await;
    drop(cassette);
    assert!(tapes.text().contains(r#""text":"first"}],"end":"left""#), "{}", tapes.text());
    assert_eq!(vendor.next().await, Seen::Closed);
    assert_eq!(timeout(ms(1000), rest(client)).await.unwrap(), "");
    let error = TcpStream::connect(("127.0.0.1", port)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn places_that_do_not_count_are_neither_recorded_nor_compared() {
    let (tapes, vendor) = (Tapes::new(), Server::start(vec![short("1")]).await);
    let builder = tapes.builder(&vendor.url(), Mode::Record).with_ignored("/user/id");
    let cassette = builder.clone().open().await.unwrap();
    ask(&cassette, r#"{"user": {"id": "jane", "x": 1}}"#).await;
    cassette.finish().await.unwrap();
    assert!(!tapes.text().contains("jane"), "{}", tapes.text());
    let cassette = builder.with_mode(Mode::Replay).open().await.unwrap();
    assert_eq!(body_of(&cassette, r#"{"user": {"id": "joe", "x": 1}}"#).await, "1");
    cassette.finish().await.unwrap();
}
