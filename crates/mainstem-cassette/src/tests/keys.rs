//! Only the vendor sees a key.

use super::*;

const KEY: &str = "a-key-that-is-secret";

#[tokio::test]
async fn no_key_is_on_a_tape_nor_said_of_it() {
    let echo: [&[u8]; 3] = [b"no such key: a-key-that", b"-is-se", b"cret, nor \"own-value\""];
    let script = chunks(&echo);
    let header = raw::whole("401 No", "request-id: a-key-that-is-secret\r\n", "no");
    let (tapes, mut vendor) =
        (Tapes::new(), Server::start(vec![script.clone(), script.clone(), header, script]).await);
    let builder = tapes.builder(&vendor.url(), Mode::Record).with_secret("own-value").with_secret("");
    let mut shown = format!("{builder:?}");
    let cassette = builder.clone().open().await.unwrap();
    let requests = [
        (
            "POST /v1/chat?alt=sse&key=a-key-that-is-secret HTTP/1.1",
            "{\"said\": \"It is a-key-that-is-secret.\"}",
        ),
        (
            "POST /v1/chat HTTP/1.1\r\nauthorization: Bearer a-key-that-is-secret",
            "plain a-key-that-is-secret",
        ),
        (
            "POST /v1/chat HTTP/1.1\r\nx-goog-api-key: a-key-that-is-secret",
            "{\"a-key-that-is-secret\": \"own-value\"}",
        ),
        ("PUT /v1/a-key-that-is-secret HTTP/1.1\r\naccept: a-key-that-is-secret\r\ncontent-type: a/b", ""),
    ];
    for (head, body) in requests {
        let response = rest(send(&cassette, head, body).await).await;
        assert!(response.contains("-is-se"), "the client sees what the vendor says: {response}");
        assert!(vendor.request().await.contains(KEY), "the vendor sees the key");
    }
    shown.push_str(&format!("{cassette:?}"));
    cassette.finish().await.unwrap();
    let tape = tapes.text();
    assert_eq!(tape.lines().count(), 5, "{tape}");
    assert!(tape.contains(r#""text":"no such key: [redacted]"},{"#), "{tape}");
    assert!(tape.contains(r#""text":", nor \"[redacted]\""}"#), "{tape}");
    assert!(tape.contains(r#""content-type":"a/b""#), "{tape}");

    // A miss does not show it either; a request with another key, or none, is equal.
    let cassette = builder.with_mode(Mode::Replay).open().await.unwrap();
    let another = "POST /v1/chat?alt=sse&key=another-key-12345 HTTP/1.1\r\nx-api-key: a-key-that-is-secret";
    assert!(rest(send(&cassette, another, requests[0].1).await).await.starts_with("HTTP/1.1 200"));
    let (head, body) =
        ("POST /v1/chat?key=a-key-that-is-secret HTTP/1.1", "{\"own-value\": [\"a-key-that-is-secret\"]}");
    let miss = rest(send(&cassette, head, body).await).await;
    assert!(miss.contains(r#"requested {\"[redacted]\":[\"[redacted]\"]}"#), "{miss}");
    shown.push_str(&format!("{miss}{:?}{cassette:?}", cassette.misses()));
    let error = cassette.finish().await.unwrap_err();
    shown.push_str(&format!("{error}{error:?}{tape}"));
    for part in ["a-key-that-is-secret", "a-key-that", "-is-se", "cret,", "own-value", "another-key"] {
        assert!(!shown.contains(part), "{part}: {shown}");
    }
}

#[tokio::test]
async fn a_key_that_is_met_later_is_taken_out_of_what_was_recorded_before() {
    let (tapes, vendor) =
        (Tapes::new(), Server::start(vec![short("a-key-that-is-secret"), short("b")]).await);
    let cassette = tapes.open(&vendor.url(), Mode::Record).await;
    ask(&cassette, "{}").await;
    rest(send(&cassette, "GET / HTTP/1.1\r\nx-api-key: a-key-that-is-secret", "").await).await;
    cassette.finish().await.unwrap();
    assert!(tapes.text().contains("[redacted]") && !tapes.text().contains(KEY), "{}", tapes.text());
}

#[tokio::test]
async fn what_can_not_be_hidden_is_not_written() {
    let check = async |secret: &str, body: &str| {
        let (tapes, vendor) = (Tapes::new(), Server::start(vec![short("said")]).await);
        let cassette = tapes.builder(&vendor.url(), Mode::Record).with_secret(secret).open().await.unwrap();
        assert_eq!(body_of(&cassette, body).await, "said", "the client gets the response nevertheless");
        let error = cassette.finish().await.unwrap_err().to_string();
        assert!(error.contains("is not written: line 2 would hold a secret"), "{error}");
        assert_eq!(tapes.text(), "");
    };
    check("ethod", "{}").await;
    check("redacted", "\"redacted\"").await;
}

#[tokio::test]
async fn a_key_on_a_hand_written_tape_is_not_shown() {
    let tapes = Tapes::new();
    fs::create_dir(tapes.path().parent().unwrap()).unwrap();
    let body = format!("{{\"json\":[\"a text that is so long that it is cut in the key: {KEY}\"]}}");
    let request = format!("{{\"method\":\"POST\",\"path\":\"/v1/chat\",\"body\":{body}}}");
    let line = format!("{{\"request\":{request},\"response\":{{}}}}");
    fs::write(tapes.path(), format!("{{\"mainstem_cassette\":1}}\n{line}\n")).unwrap();
    let cassette = tapes.replay().await;
    let head = format!("POST /v1/chat HTTP/1.1\r\nx-api-key: {KEY}");
    let said = rest(send(&cassette, &head, "[\"a text that is so long that it is cut\"]").await).await;
    assert!(said.contains("in the key: [redacted]") && !said.contains("a-key"), "{said}");
    assert!(cassette.finish().await.is_err());
}
