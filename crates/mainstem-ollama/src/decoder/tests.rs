//! Decoding: the documented lines, those of older versions and proxies, and invalid data.

use mainstem_testing::provider::payloads;

use super::*;
use crate::Ollama;

const ENDED: &str = "!transport: 127.0.0.1:11434 ended the connection before its answer was complete";

/// Returns the deltas of some lines in short: `text`, `~thinking~`, `0+id:name`, `0:arguments`,
/// `0.` for an ended call, `7+2(3)` for usage and its cached part, `|stop`, `!kind: message`.
fn decode(lines: &[&str]) -> String {
    let mut decoder = Decoder::new(Arc::new(Ollama::new("m").server().clone()));
    let mut deltas = Deltas::new();
    let mut decoded = Ok(());
    for line in lines {
        decoded = decoder.decode(line, &mut deltas);
        if decoded.is_err() || decoder.is_done() {
            break;
        }
    }
    let decoded = decoded.and_then(|()| decoder.finish(&mut deltas));
    shown(&deltas, decoded)
}

fn whole(body: &str) -> String {
    let mut deltas = Deltas::new();
    let decoded = Decoder::new(Arc::new(Ollama::new("m").server().clone())).decode_whole(body, &mut deltas);
    shown(&deltas, decoded)
}

fn shown(deltas: &Deltas, decoded: Result<(), ModelError>) -> String {
    let mut shown: Vec<_> = deltas.iter().map(show).collect();
    shown.extend(decoded.err().map(|error| format!("!{}: {error}", error.kind().code())));
    shown.join(" ")
}

fn show(delta: &ModelDelta) -> String {
    match delta {
        ModelDelta::Text(text) => text.replace('\n', "⏎"),
        ModelDelta::Thinking(text) => format!("~{text}~"),
        ModelDelta::CallStart { slot, id, name } => {
            format!("{slot}+{}:{name}", id.as_ref().map_or("", |id| id.as_str()))
        }
        ModelDelta::CallArguments { slot, delta } => format!("{slot}:{delta}"),
        ModelDelta::CallEnd { slot, opaque } if opaque.is_empty() => format!("{slot}."),
        ModelDelta::Usage(usage) => {
            format!("{}+{}({})", usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
        }
        ModelDelta::Stop(reason) => format!("|{reason}"),
        other => panic!("{other:?} is not for this decoder to say"),
    }
}

/// Returns a line with a message.
fn line(message: &str) -> String {
    format!(r#"{{"model":"m","created_at":"2025-07-07T20:22:19.184789Z","message":{message},"done":false}}"#)
}

/// Checks the deltas of messages that end with `stop`.
fn check(messages: &[&str], expected: &str) {
    let mut lines: Vec<_> = messages.iter().map(|message| line(message)).collect();
    lines
        .push(r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}"#.to_owned());
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    assert_eq!(decode(&lines), expected, "{messages:?}");
}

#[test]
fn content() {
    check(&[r#"{"role":"assistant","content":"Hé\n"}"#, r#"{"content":"llo"}"#], "Hé⏎ llo |stop");
    check(&[r#"{"content":"a\u00e9\ud83d\ude00"}"#], "aé😀 |stop");
    check(&[r#"{"content":"","thinking":"h"}"#, r#"{"content":"a","thinking":"m"}"#], "~h~ ~m~ a |stop");
    check(&[r#"{"content":null,"thinking":null,"tool_calls":null,"images":null}"#, "{}", "null"], "|stop");
    check(&[r#"{"content":"a","logprobs":[{"token":"a"}],"new":{"field":1}}"#], "a |stop");
}

#[test]
fn calls_are_whole() {
    check(
        &[r#"{"content":"","tool_calls":[{"function":{"name":"f","arguments":{"b":1,"a":[2.0,null]}}}]}"#],
        r#"0+:f 0:{"b":1,"a":[2.0,null]} 0. |tool_calls"#,
    );
    // Newer versions give ids; two calls in one line, one in the next.
    check(
        &[
            r#"{"tool_calls":[{"id":"a","function":{"index":0,"name":"f","arguments":{}}},{"id":"b","function":{"index":1,"name":"f","arguments":{}}}]}"#,
            r#"{"tool_calls":[{"id":"c","function":{"index":0,"name":"g","arguments":{}}}]}"#,
        ],
        "0+a:f 0:{} 0. 1+b:f 1:{} 1. 2+c:g 2:{} 2. |tool_calls",
    );
    // Two calls with one id are two calls.
    let same = r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]}"#;
    check(&[same, same], "0+a:f 0:{} 0. 1+a:f 1:{} 1. |tool_calls");
    // Text and thinking come before the calls of their line.
    check(
        &[r#"{"tool_calls":[{"function":{"name":"f","arguments":{}}}],"content":"a","thinking":"hm"}"#],
        "~hm~ a 0+:f 0:{} 0. |tool_calls",
    );
}

#[test]
fn calls_of_proxies() {
    check(
        &[r#"{"tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]}"#],
        r#"0+:f 0:{"a": 1} 0. |tool_calls"#,
    );
    for nothing in [r#""arguments":null"#, r#""arguments":"""#, r#""description":"""#] {
        let call = format!(r#"{{"tool_calls":[{{"function":{{"name":"f",{nothing}}}}}]}}"#);
        check(&[&call], "0+:f 0. |tool_calls");
    }
    check(&[r#"{"tool_calls":[{"function":{"arguments":[1]}}]}"#], "0+: 0:[1] 0. |tool_calls");
    check(&[r#"{"tool_calls":[]}"#], "|stop");
}

#[test]
fn every_reason() {
    let done = |reason: &str| format!(r#"{{"message":{{"content":"a"}},"done":true{reason}}}"#);
    for (reason, expected) in [
        (r#","done_reason":"stop""#, "a |stop"),
        (r#","done_reason":"length""#, "a |length"),
        (r#","done_reason":"load""#, "a |load"),
        (r#","done_reason":"unload""#, "a |unload"),
        (r#","done_reason":"bored""#, "a |bored"),
        (r#","done_reason":"""#, "a |stop"),
        (r#","done_reason":null"#, "a |stop"),
        ("", "a |stop"),
    ] {
        assert_eq!(decode(&[&done(reason)]), expected);
    }
    let call = line(r#"{"tool_calls":[{"function":{"name":"f","arguments":{}}}]}"#);
    assert_eq!(decode(&[&call, r#"{"done":true}"#]), "0+:f 0:{} 0. |tool_calls");
    assert_eq!(decode(&[&call, &done(r#","done_reason":"length""#)]), "0+:f 0:{} 0. a |length");
}

#[test]
fn an_answer_is_complete_when_it_is_done() {
    let text = line(r#"{"content":"a"}"#);
    assert_eq!(decode(&[]), ENDED);
    assert_eq!(decode(&[&text]), format!("a {ENDED}"));
    assert_eq!(decode(&[&text, r#"{"done_reason":"stop"}"#, r#"{"done":null}"#]), format!("a {ENDED}"));
    assert_eq!(decode(&["", &text, " \r", r#"{"done":true}"#, "garbage"]), "a |stop");
}

#[test]
fn usage_comes_before_the_reason() {
    let done = |counts: &str| format!(r#"{{"done":true,"done_reason":"stop"{counts}}}"#);
    for (counts, expected) in [
        ("", "|stop"),
        (r#","prompt_eval_count":26,"eval_count":298"#, "26+298(0) |stop"),
        (r#","prompt_eval_count":40,"prompt_eval_cached_count":32,"eval_count":5"#, "40+5(32) |stop"),
        (r#","eval_count":5"#, "0+5(0) |stop"),
        (r#","prompt_eval_count":40,"eval_count":null"#, "40+0(0) |stop"),
    ] {
        assert_eq!(decode(&[&done(counts)]), expected);
    }
    let early = r#"{"message":{"content":"a"},"prompt_eval_count":3,"eval_count":1,"done":false}"#;
    assert_eq!(decode(&[early, r#"{"done":true}"#]), "a 3+1(0) |stop");
}

#[test]
fn errors_in_mid_stream() {
    let text = line(r#"{"content":"a"}"#);
    let check = |error: &str, expected: &str| {
        assert_eq!(decode(&[&text, error, &text]), format!("a !server_error: 127.0.0.1:11434 {expected}"));
    };
    check(
        r#"{"error":"an error was encountered while running the model"}"#,
        "broke off its answer: an error was encountered while running the model",
    );
    check(
        r#"{"model":"m","message":{"role":"assistant","content":"b"},"done":true,"error":"gone"}"#,
        "broke off its answer: gone",
    );
    check(r#"{"error":{"message":"deep"}}"#, "broke off its answer: deep");
    assert_eq!(decode(&[r#"{"error":null,"message":{"content":"a"},"done":true}"#]), "a |stop");
}

#[test]
fn a_key_is_never_quoted() {
    let mut server = Ollama::new("m").server().clone();
    server.set_key("key-123456789".to_owned().into());
    for echo in [r#"{"error":"wrong key-123456789"}"#, "key-123456789 {"] {
        let mut decoder = Decoder::new(Arc::new(server.clone()));
        let error = decoder.decode(echo, &mut Deltas::new()).unwrap_err().to_string();
        assert!(error.contains("[secret]") && !error.contains("key-1"), "{error}");
    }
}

#[test]
fn nonsense_is_quoted_with_its_place() {
    let says = "!protocol: 127.0.0.1:11434 sent what is no Ollama response:";
    for (line, expected) in [
        ("hello", "expected value at line 1 column 1: hello"),
        ("{} {}", "trailing characters at line 1 column 4: {} {}"),
        (
            r#"{"message":{"content":1}}"#,
            r#"invalid type: integer `1`, expected a string at line 1 column 23: {"message":{"content":1}}"#,
        ),
        (
            r#"{"message":{"tool_calls":[{}]}}"#,
            r#"missing field `function` at line 1 column 28: {"message":{"tool_calls":[{}]}}"#,
        ),
    ] {
        assert_eq!(decode(&[line]), format!("{says} {expected}"));
    }
    // JSON over several lines differs from a line that is cut at the end of the stream.
    assert_eq!(decode(&["{", "}"]), format!("{says} EOF while parsing an object at line 1 column 1: {{"));
    let long = decode(&[&"x".repeat(10_000)]);
    assert!(long.len() < 400 && long.ends_with("xxx…"), "{long}");
}

#[test]
fn an_answer_of_one_piece() {
    // https://github.com/ollama/ollama/blob/main/docs/api.md: "Chat request (No streaming, with
    // tools)", "(Structured outputs)".
    let tools = whole(include_str!("../../tests/fixtures/chat_whole_tools.body"));
    assert_eq!(
        tools.split_whitespace().collect::<String>(),
        r#"0+:get_weather0:{"city":"Tokyo"}0.169+18(0)|tool_calls"#
    );
    assert_eq!(
        whole(include_str!("../../tests/fixtures/chat_whole_schema.body")),
        r#"{"age": 22, "available": false} 34+12(0) |stop"#
    );
    assert_eq!(whole(r#"{"message":{"content":"a","thinking":"hm"}}"#), "~hm~ a |stop");
    assert_eq!(whole(r#"{"message":{"content":""},"done_reason":"load","done":true}"#), "|load");
    assert_eq!(
        whole(r#"{"error":"the model failed to generate a response"}"#),
        "!server_error: 127.0.0.1:11434 broke off its answer: the model failed to generate a response"
    );
    assert_eq!(
        whole("{"),
        "!protocol: 127.0.0.1:11434 sent what is no Ollama response: EOF while parsing an object at line 1 column 1: {"
    );
    assert_eq!(
        whole("{}"),
        "!protocol: 127.0.0.1:11434 sent what is no Ollama response: it has no message: {}"
    );
}

/// Returns the deltas of recorded bytes that arrive in these pieces.
fn replay<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    decode(&payloads::<Chat>(pieces).iter().map(String::as_str).collect::<Vec<_>>())
}

macro_rules! recorded {
    ($name:literal) => {
        include_bytes!(concat!("../../tests/fixtures/", $name, ".body"))
    };
}

const STREAMS: [&[u8]; 5] = [
    recorded!("chat_stream"),
    recorded!("chat_stream_tools"),
    recorded!("chat_stream_thinking"),
    recorded!("chat_stream_parallel"),
    recorded!("chat_stream_error"),
];

/// Lines of the shapes and with the values of
/// <https://github.com/ollama/ollama/blob/main/docs/api.md> ("Chat request (Streaming)" and "with
/// tools"), <https://docs.ollama.com/capabilities/thinking>,
/// <https://docs.ollama.com/capabilities/tool-calling> (ids and indexes as in `api/types.go`) and
/// <https://docs.ollama.com/api/errors>. Texts in between are made up.
#[test]
fn documented_streams() {
    let deltas = STREAMS.map(|body| replay([body])).join("\n");
    insta::assert_snapshot!(deltas, @r#"
    The  sky’s "blue"  …⏎ 26+282(0) |stop
    0+:get_weather 0:{"city":"Tokyo"} 0. 169+15(0) |tool_calls
    ~17 × 23:~ ~ 340 + 51~ It is  391. 29+18(11) |stop
    ~Both cities.~ 0+call_8ktu2mdq:get_temperature 0:{"city":"New York"} 0. 1+call_x91v0hpe:get_temperature 1:{"city":"Zürich","unit":"°C"} 1. 169+41(0) |tool_calls
     Yes . I can !server_error: 127.0.0.1:11434 broke off its answer: an error was encountered while running the model
    "#);
}
