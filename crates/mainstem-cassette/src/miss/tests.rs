//! Messages about requests that are not on the tape.

use serde_json::{Value, json};

use super::*;
use crate::exchange::Body;

fn requested(path: &str, body: Value) -> TapeRequest {
    TapeRequest { method: "POST".into(), path: path.into(), headers: [].into(), body: Some(Body::Json(body)) }
}

fn check(recorded: &[TapeRequest], expected: &str) {
    let requested = requested("/v1/chat", json!({"model": "m", "messages": [{"content": "Rome?"}]}));
    let recorded: Vec<_> = recorded.iter().enumerate().map(|(index, one)| (index + 2, one.clone())).collect();
    let said = sentence("t.jsonl", &requested, &recorded);
    let rest = said
        .strip_prefix("t.jsonl has no response to POST /v1/chat (MAINSTEM_CASSETTE=record records anew): ");
    assert_eq!(rest.unwrap_or(&said), expected);
}

#[test]
fn the_nearest_is_the_one_with_the_fewest_differences() {
    let chat = |model: &str, said: &str| {
        requested("/v1/chat", json!({"model": model, "messages": [{"content": said}]}))
    };
    check(
        &[chat("n", "Oslo?"), chat("m", "Paris?"), requested("/v1/embed", json!({}))],
        r#"line 3 is nearest, but /messages/0/content: recorded "Paris?", requested "Rome?""#,
    );
    check(
        &[chat("n", "Oslo?")],
        r#"line 2 is nearest, but /messages/0/content: recorded "Oslo?", requested "Rome?"; /model: recorded "n", requested "m""#,
    );
}

#[test]
fn what_else_can_be_the_matter() {
    check(&[], "nothing is on the tape");
    check(&[requested("/v1/embed", json!({}))], "it has POST /v1/embed (line 2)");
    let same = requested("/v1/chat", json!({"model": "m", "messages": [{"content": "Rome?"}]}));
    check(&[same.clone(), same], "line 3 is the same, but has been played; each line is played once");
    let many: Value =
        (0..9).map(|key| (key.to_string(), json!(key))).collect::<serde_json::Map<_, _>>().into();
    check(
        &[requested("/v1/chat", many)],
        "line 2 is nearest, but /0: recorded 0, requested nothing; /1: recorded 1, requested nothing; /2: recorded 2, requested nothing; /3: recorded 3, \
         requested nothing; /4: recorded 4, requested nothing; and 6 more",
    );
}
