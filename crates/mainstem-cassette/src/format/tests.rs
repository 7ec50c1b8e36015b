//! A tape's text: writing, reading, and errors with line and column.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::exchange::{Body, Chunk, End, TapeRequest, TapeResponse};

fn exchange(body: Option<Body>, chunks: Vec<Chunk>, end: End) -> Exchange {
    let request = TapeRequest { method: "POST".into(), path: "/v1/x?y=z".into(), headers: [].into(), body };
    let headers = [("content-type".to_owned(), "text/event-stream".to_owned())].into();
    Exchange { request, response: TapeResponse { status: Some(200), headers, chunks, end } }
}

fn chunk(ms: u64, bytes: &[u8]) -> Chunk {
    Chunk { ms, bytes: bytes.to_vec() }
}

/// Writes and reads.
fn back(exchanges: &[Exchange]) -> Vec<Exchange> {
    let text = head() + &exchanges.iter().map(encode).collect::<String>();
    assert_eq!(text.lines().count(), exchanges.len() + 1, "one line for each");
    decode(Path::new("t.jsonl"), &text).unwrap()
}

#[test]
fn a_line_reads_well_in_a_diff() {
    let body = Some(Body::Json(json!({"model": "m"})));
    let chunks = vec![chunk(12, b"data: gr\xc3\xb6"), chunk(0, b"\xc3"), chunk(1, b"\xb6 \n\n")];
    assert_eq!(
        encode(&exchange(body, chunks, End::Cut)),
        concat!(
            r#"{"request":{"method":"POST","path":"/v1/x?y=z","body":{"json":{"model":"m"}}},"#,
            r#""response":{"status":200,"headers":{"content-type":"text/event-stream"},"#,
            r#""chunks":[{"ms":12,"text":"data: grö"},{"base64":"ww=="},{"ms":1,"base64":"tiAKCg=="}],"end":"cut"}}"#,
            "\n"
        )
    );
    assert_eq!(head(), "{\"mainstem_cassette\":1}\n");
}

#[test]
fn what_is_no_tape_is_said_with_its_place() {
    let check = |text: &str, expected: &str| {
        assert_eq!(decode(Path::new("t.jsonl"), text).unwrap_err().to_string(), expected, "{text}");
    };
    let rest = |line: &str| head() + line;
    check("", "t.jsonl:1:1: invalid line: EOF while parsing a value");
    check("{}", "t.jsonl:1:2: invalid line: missing field `mainstem_cassette`");
    check("{\"mainstem_cassette\":2}", "t.jsonl:1:1: this tape has version 2; only version 1 can be read");
    check(&rest("{\"request\":"), "t.jsonl:2:11: invalid line: EOF while parsing a value");
    check(&rest("\n"), "t.jsonl:2:1: invalid line: EOF while parsing a value");
    check(
        &rest("{\"request\":{\"method\":\"GET\",\"path\":\"/\",\"oops\":1}}"),
        "t.jsonl:2:44: invalid line: unknown field `oops`, expected one of `method`, `path`, `headers`, `body`",
    );
    let chunk = |chunk: &str| {
        rest(&format!(
            "{{\"request\":{{\"method\":\"GET\",\"path\":\"/\"}},\"response\":{{\"chunks\":[{chunk}]}}}}"
        ))
    };
    check(&chunk("{}"), "t.jsonl:2:64: invalid line: a chunk has either `text` or `base64`");
    check(
        &chunk("{\"base64\":\"*\"}"),
        "t.jsonl:2:76: invalid line: invalid base64: Invalid symbol 42, offset 0.",
    );
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![prop::collection::vec(any::<u8>(), 0..20), "\\PC{0,8}".prop_map(String::into_bytes)]
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Complete), Just(End::Cut), Just(End::Left)]
}

proptest! {
    #[test]
    fn any_chunks_come_back_as_they_were(
        responses in prop::collection::vec((bytes(), prop::collection::vec((any::<u64>(), bytes()), 0..12), ends()), 0..4)
    ) {
        let chunks = |chunks: Vec<(u64, Vec<u8>)>| chunks.into_iter().map(|(ms, bytes)| Chunk { ms, bytes }).collect();
        let tape: Vec<_> =
            responses.into_iter().map(|(body, all, end)| exchange(Body::of(&body), chunks(all), end)).collect();
        prop_assert_eq!(back(&tape), tape);
    }
}
