//! Messages about requests that are not on the tape.

use serde_json::{Value, json};

use super::*;
use crate::exchange::Body;

fn asked(path: &str, body: Value) -> TapeRequest {
    TapeRequest { method: "POST".into(), path: path.into(), headers: [].into(), body: Some(Body::Json(body)) }
}

fn check(recorded: &[TapeRequest], expected: &str) {
    let asked = asked("/v1/chat", json!({"model": "m", "messages": [{"content": "Rome?"}]}));
    let recorded: Vec<_> = recorded.iter().enumerate().map(|(index, one)| (index + 2, one.clone())).collect();
    let said = sentence("t.jsonl", &asked, &recorded);
    let rest =
        said.strip_prefix("t.jsonl has no answer to POST /v1/chat (MAINSTEM_CASSETTE=record records anew): ");
    assert_eq!(rest.unwrap_or(&said), expected);
}

#[test]
fn the_nearest_is_the_one_with_the_fewest_differences() {
    let chat =
        |model: &str, said: &str| asked("/v1/chat", json!({"model": model, "messages": [{"content": said}]}));
    check(
        &[chat("n", "Oslo?"), chat("m", "Paris?"), asked("/v1/embed", json!({}))],
        r#"line 3 is nearest, but /messages/0/content: recorded "Paris?", asked "Rome?""#,
    );
    check(
        &[chat("n", "Oslo?")],
        r#"line 2 is nearest, but /messages/0/content: recorded "Oslo?", asked "Rome?"; /model: recorded "n", asked "m""#,
    );
}

#[test]
fn what_else_can_be_the_matter() {
    check(&[], "nothing is on the tape");
    check(&[asked("/v1/embed", json!({}))], "it has POST /v1/embed (line 2)");
    let same = asked("/v1/chat", json!({"model": "m", "messages": [{"content": "Rome?"}]}));
    check(&[same.clone(), same], "line 3 is the same, but has been played; each line is played once");
    let many: Value =
        (0..9).map(|key| (key.to_string(), json!(key))).collect::<serde_json::Map<_, _>>().into();
    check(
        &[asked("/v1/chat", many)],
        "line 2 is nearest, but /0: recorded 0, asked nothing; /1: recorded 1, asked nothing; /2: recorded 2, asked nothing; /3: recorded 3, \
         asked nothing; /4: recorded 4, asked nothing; and 6 more",
    );
}
