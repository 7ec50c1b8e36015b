//! Decoding: each kind of event, documented streams, and invalid data.

use mainstem_testing::provider::payloads;
use proptest::prelude::*;

use super::*;
use crate::Anthropic;

/// Returns the deltas of some payloads in short: `text`, `~thinking~`, `;` for an ended block with
/// what is kept of it, `0+id:name`, `0:arguments`, `0.` for an ended call,
/// `7+2(read,written,reasoning)` for usage, `|stop`, `!kind: message`.
fn decode(payloads: &[&str]) -> String {
    let mut decoder = Decoder::new(Arc::new(Anthropic::new("m").server().clone()));
    let mut deltas = Deltas::new();
    let mut decoded = payloads.iter().try_for_each(|payload| decoder.decode(payload, &mut deltas));
    if decoded.is_ok() {
        decoded = decoder.finish(&mut deltas);
    }
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
        ModelDelta::Thinking(text) => format!("~{}~", text.replace('\n', "⏎")),
        ModelDelta::BlockEnd { opaque } if opaque.is_empty() => ";".to_owned(),
        ModelDelta::BlockEnd { opaque } => format!(";{}", serde_json::to_string(opaque).unwrap()),
        ModelDelta::CallStart { slot, id, name } => {
            format!("{slot}+{}:{name}", id.as_ref().map_or("", |id| id.as_str()))
        }
        ModelDelta::CallArguments { slot, delta } => format!("{slot}:{delta}"),
        ModelDelta::CallEnd { slot, .. } => format!("{slot}."),
        ModelDelta::ServerToolCall { name, input } => format!("${name}{input}"),
        ModelDelta::Usage(usage) => format!(
            "{}+{}({},{}{},{})",
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            if usage.cache_write_1h_tokens > 0 {
                format!(":{}", usage.cache_write_1h_tokens)
            } else {
                String::new()
            },
            usage.reasoning_tokens
        ),
        ModelDelta::Stop(reason) => format!("|{reason}"),
        other => panic!("{other:?} is not for a decoder to say"),
    }
}

fn start(index: u64, block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
}

fn delta(index: u64, delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
}

fn text(index: u64, text: &str) -> String {
    delta(index, &format!(r#"{{"type":"text_delta","text":"{text}"}}"#))
}

/// Returns a fragment of arguments; its quotation marks are escaped here.
fn json(index: u64, json: &str) -> String {
    let json = json.replace('"', "\\\"");
    delta(index, &format!(r#"{{"type":"input_json_delta","partial_json":"{json}"}}"#))
}

fn stop(index: u64) -> String {
    format!(r#"{{"type":"content_block_stop","index":{index}}}"#)
}

fn ending(reason: &str) -> String {
    format!(r#"{{"type":"message_delta","delta":{{"stop_reason":{reason},"stop_sequence":null}}}}"#)
}

const STOPPED: &str = r#"{"type":"message_stop"}"#;

/// Checks the deltas of events that a stream ends with `end_turn` and `message_stop`.
fn check(events: &[String], expected: &str) {
    let ending = [ending("\"end_turn\""), STOPPED.to_owned()];
    let events: Vec<_> = events.iter().chain(&ending).map(String::as_str).collect();
    assert_eq!(decode(&events), expected, "{events:?}");
}

#[test]
fn content() {
    let begun = r#"{"type":"text","text":""}"#;
    check(&[start(0, begun), text(0, "Hé\\n"), text(0, ""), text(0, "llo"), stop(0)], "Hé⏎ llo ; |stop");
    check(&[start(0, begun), text(0, "a\\u00e9\\ud83d\\ude00"), stop(0)], "aé😀 ; |stop");
    // Two blocks stay two.
    check(
        &[start(0, begun), text(0, "a"), stop(0), start(1, r#"{"type":"text","text":"b"}"#), stop(1)],
        "a ; b ; |stop",
    );
    // Not begun, or not ended.
    check(&[text(0, "a"), stop(0)], "a |stop");
    check(&[start(0, begun), text(0, "a")], "a ; |stop");
    check(&[start(0, begun), text(0, "a"), start(0, begun), text(0, "b")], "a ; b ; |stop");
    check(
        &[
            start(0, begun),
            delta(0, r#"{"type":"citations_delta","citation":{"type":"page_location"}}"#),
            text(0, "a"),
            stop(0),
        ],
        "a ; |stop",
    );
}

#[test]
fn thinking() {
    let begun = r#"{"type":"thinking","thinking":"","signature":""}"#;
    let thought =
        |thinking: &str| delta(0, &format!(r#"{{"type":"thinking_delta","thinking":"{thinking}"}}"#));
    let signed = delta(0, r#"{"type":"signature_delta","signature":"s+/="}"#);
    let kept = r#";{"anthropic":{"signature":"s+/="}}"#;
    check(
        &[start(0, begun), thought("h"), thought("m"), signed.clone(), stop(0)],
        &format!("~h~ ~m~ {kept} |stop"),
    );
    check(&[start(0, begun), thought(""), signed.clone(), stop(0)], &format!("{kept} |stop"));
    check(&[start(0, begun), thought("h"), stop(0)], "~h~ ; |stop");
    let whole = r#"{"type":"thinking","thinking":"h","signature":"s+/="}"#;
    check(&[start(0, whole), stop(0)], &format!("~h~ {kept} |stop"));
    check(
        &[start(0, r#"{"type":"redacted_thinking","data":"d=="}"#), stop(0)],
        r#";{"anthropic":{"redacted":"d=="}} |stop"#,
    );
    // A signature without a block.
    check(&[signed], "|stop");
}

#[test]
fn calls() {
    let call =
        |id: &str, input: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{input}}}"#);
    check(
        &[start(1, &call("a", "{}")), json(1, ""), json(1, r#"{"a""#), json(1, ":1}"), stop(1)],
        r#"0+a:f 0:{"a" 0::1} 0. |tool_calls"#,
    );
    // Without parameters.
    check(&[start(0, &call("a", "{}")), json(0, ""), stop(0)], "0+a:f 0. |tool_calls");
    // Whole at once; pieces take precedence.
    let whole = call("a", r#"{"b": 1, "a": []}"#);
    check(&[start(0, &whole), stop(0)], r#"0+a:f 0:{"b":1,"a":[]} 0. |tool_calls"#);
    check(&[start(0, &whole), json(0, ""), stop(0)], r#"0+a:f 0:{"b":1,"a":[]} 0. |tool_calls"#);
    check(&[start(0, &whole), json(0, "{}"), stop(0)], "0+a:f 0:{} 0. |tool_calls");
    check(&[start(0, &whole)], r#"0+a:f 0:{"b":1,"a":[]} 0. |tool_calls"#);
    check(&[start(0, &call("a", r#""{}""#)), stop(0)], "0+a:f 0:{} 0. |tool_calls");
    check(&[start(0, &call("a", "null")), stop(0)], "0+a:f 0. |tool_calls");
    // In parallel, interleaved.
    check(
        &[
            start(0, &call("a", "{}")),
            start(1, &call("b", "{}")),
            json(1, "2"),
            json(0, "1"),
            stop(0),
            stop(1),
        ],
        "0+a:f 1+b:f 1:2 0:1 0. 1. |tool_calls",
    );
    // Without an id, with the id of another.
    check(
        &[start(0, r#"{"type":"tool_use","name":"f"}"#), stop(0), start(1, &call("", "{}")), stop(1)],
        "0+:f 0. 1+:f 1. |tool_calls",
    );
    check(
        &[start(0, &call("a", "{}")), stop(0), start(1, &call("a", "{}")), stop(1)],
        "0+a:f 0. 1+a:f 1. |tool_calls",
    );
    // Arguments without a call, and text within one.
    check(&[json(0, "{}"), start(1, &call("a", "{}")), text(1, "x"), stop(1)], "0+a:f 0. |tool_calls");
}

#[test]
fn blocks_of_the_vendors_own_tools_are_kept() {
    check(
        &[
            start(0, r#"{"type":"text","text":""}"#),
            text(0, "I search."),
            stop(0),
            start(1, r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{}}"#),
            json(1, r#"{"query""#),
            json(1, r#":"x"}"#),
            text(1, "not said"),
            stop(1),
            start(2, r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[{"title":"X"}]}"#),
            stop(2),
        ],
        r#"I search. ; $web_search{"query":"x"} ;{"anthropic":{"server":"{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\",\"input\":{\"query\":\"x\"}}"}} ;{"anthropic":{"server":"{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"s\",\"content\":[{\"title\":\"X\"}]}"}} |stop"#,
    );
}

#[test]
fn what_is_unknown_is_left_out() {
    check(
        &[
            r#"{"type":"ping"}"#.to_owned(),
            r#"{"type":"vibe_check","index":"high","delta":7,"message":[]}"#.to_owned(),
            start(1, r#"{"type":"hologram","text":{"x":1},"input":"?"}"#),
            delta(1, r#"{"type":"hologram_delta","text":[1]}"#),
            stop(1),
            text(2, "a"),
            delta(2, r#"{"type":"text_delta","text":"b","confidence":{"low":true}}"#),
        ],
        "a b |stop",
    );
}

#[test]
fn every_stop_reason() {
    for (reason, expected) in [
        ("\"end_turn\"", "|stop"),
        ("\"stop_sequence\"", "|stop"),
        ("\"max_tokens\"", "|length"),
        ("\"model_context_window_exceeded\"", "|length"),
        ("\"tool_use\"", "|tool_calls"),
        ("\"refusal\"", "|refusal"),
        ("\"pause_turn\"", "|paused"),
        ("\"bored\"", "|bored"),
    ] {
        assert_eq!(decode(&[&ending(reason)]), expected, "without message_stop");
        assert_eq!(decode(&[&ending(reason), STOPPED]), expected);
    }
    assert_eq!(decode(&[&ending("\"pause_turn\"")]), decode(&[&ending("\"pause_turn\""), STOPPED]));
    let call = start(0, r#"{"type":"tool_use","id":"a","name":"f","input":{}}"#);
    assert_eq!(decode(&[&call, &ending("\"max_tokens\""), STOPPED]), "0+a:f 0. |length");
    assert_eq!(decode(&[&call, &ending("\"stop_sequence\""), STOPPED]), "0+a:f 0. |tool_calls");
    let cut = "!transport: api.anthropic.com ended the connection before its answer was complete";
    assert_eq!(decode(&[&ending("null")]), cut);
    assert_eq!(decode(&[&ending("null"), STOPPED]), "|stop");
    assert_eq!(decode(&[&text(0, "a")]), format!("a {cut}"));
    assert_eq!(decode(&[]), cut);
    assert_eq!(decode(&["", " \n", STOPPED]), "|stop");
}

#[test]
fn usage_is_counted_as_we_count() {
    let begin =
        |usage: &str| format!(r#"{{"type":"message_start","message":{{"content":[],"usage":{usage}}}}}"#);
    let end = |usage: &str| {
        format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#)
    };
    let check = |first: &str, last: &str, expected: &str| {
        assert_eq!(decode(&[&begin(first), &end(last), STOPPED]), expected, "{first} {last}");
    };
    check(r#"{"input_tokens":25,"output_tokens":1}"#, r#"{"output_tokens":15}"#, "25+15(0,0,0) |stop");
    // The input is the part without a cache.
    check(
        r#"{"input_tokens":3,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":1}"#,
        r#"{"output_tokens":15,"output_tokens_details":{"thinking_tokens":9}}"#,
        "123+15(100,20,9) |stop",
    );
    // Of what is written to the cache, a part stays for an hour.
    check(
        r#"{"input_tokens":3,"cache_creation_input_tokens":20,"cache_creation":{"ephemeral_5m_input_tokens":8,"ephemeral_1h_input_tokens":12},"output_tokens":1}"#,
        r#"{"output_tokens":15}"#,
        "23+15(0,20:12,0) |stop",
    );
    // Counts are cumulative; a search has made the input longer.
    check(
        r#"{"input_tokens":2679,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":3}"#,
        r#"{"input_tokens":10682,"cache_creation_input_tokens":0,"cache_read_input_tokens":null,"output_tokens":510,"server_tool_use":{"web_search_requests":1}}"#,
        "10682+510(0,0,0) |stop",
    );
    check("null", r#"{"output_tokens":2}"#, "0+2(0,0,0) |stop");
    check(r#"{"input_tokens":7}"#, "null", "7+0(0,0,0) |stop");
    check("null", "null", "|stop");
    let most = u64::MAX;
    let endless =
        format!(r#"{{"input_tokens":{most},"cache_read_input_tokens":{most},"output_tokens":{most}}}"#);
    check(&endless, "null", &format!("{most}+{most}({most},0,0) |stop"));
}

#[test]
fn errors_in_mid_stream() {
    let check = |kind: &str, expected: &str, retryable: bool| {
        let error =
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"No"}},"request_id":"req_1"}}"#);
        assert_eq!(
            decode(&[&text(0, "a"), &error, &text(0, "b")]),
            format!("a !{expected}: api.anthropic.com broke off its answer: No")
        );
        let failed = Decoder::new(Arc::new(Anthropic::new("m").server().clone()))
            .decode(&error, &mut Deltas::new())
            .unwrap_err();
        assert_eq!(failed.is_retryable(), retryable, "{kind}");
    };
    check("overloaded_error", "overloaded", true);
    check("api_error", "server_error", true);
    check("rate_limit_error", "rate_limited", true);
    check("timeout_error", "timeout", true);
    check("invalid_request_error", "invalid_request", false);
    check("authentication_error", "auth", false);
    check("permission_error", "auth", false);
    check("billing_error", "quota_exceeded", false);
    check("not_found_error", "not_found", false);
    check("something_new", "server_error", true);
    // From a gateway; it is not an event.
    assert_eq!(
        decode(&[r#"{"error":"gone"}"#]),
        "!server_error: api.anthropic.com broke off its answer: gone"
    );
}

#[test]
fn nonsense_is_quoted_with_its_place() {
    let says = "!protocol: api.anthropic.com sent what is no message of the Messages API:";
    for (payload, expected) in [
        (r#"{"type":"error"}"#, r#"it is an error that does not say which: {"type":"error"}"#),
        ("{}", "missing field `type` at line 1 column 2: {}"),
        ("hello", "expected value at line 1 column 1: hello"),
        (r#"{"type":"ping"} {}"#, r#"trailing characters at line 1 column 17: {"type":"ping"} {}"#),
        (r#"{"type":"ping""#, r#"EOF while parsing an object at line 1 column 14: {"type":"ping""#),
    ] {
        assert_eq!(decode(&[payload]), format!("{says} {expected}"));
    }
    let wrong =
        decode(&[r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":1}}"#]);
    assert!(wrong.starts_with(&format!("{says} invalid type: integer `1`, expected a string")), "{wrong}");
    let long = decode(&[&"x".repeat(10_000)]);
    assert!(long.len() < 400 && long.ends_with("xxx…"), "{long}");
}

#[test]
fn an_answer_of_one_piece() {
    let whole = |body: &str| {
        let mut deltas = Deltas::new();
        let decoded =
            Decoder::new(Arc::new(Anthropic::new("m").server().clone())).decode_whole(body, &mut deltas);
        shown(&deltas, decoded)
    };
    // https://platform.claude.com/docs/en/build-with-claude/working-with-messages
    assert_eq!(
        whole(
            r#"{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message","role":"assistant","content":[{"type":"text","text":"Hello!"}],"model":"claude-opus-5","stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":6}}"#
        ),
        "Hello! ; 12+6(0,0,0) |stop"
    );
    assert_eq!(
        whole(
            r#"{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"x"}},{"type":"tool_use","id":"a","name":"f","input":{"x":1}},{"type":"tool_use","id":"b","name":"g","input":{}}],"stop_reason":"tool_use"}"#
        ),
        r#"~hm~ ;{"anthropic":{"signature":"s"}} ;{"anthropic":{"redacted":"d"}} $web_search{"query":"x"} ;{"anthropic":{"server":"{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\",\"input\":{\"query\":\"x\"}}"}} 0+a:f 0:{"x":1} 0. 1+b:g 1. |tool_calls"#
    );
    assert_eq!(whole(r#"{"content":[],"stop_reason":null}"#), "|stop");
    assert_eq!(
        whole(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
        "!overloaded: api.anthropic.com broke off its answer: Overloaded"
    );
    let says = "!protocol: api.anthropic.com sent what is no message of the Messages API:";
    assert_eq!(whole("{}"), format!("{says} it has no content: {{}}"));
    assert_eq!(
        whole("[1"),
        format!("{says} invalid type: integer `1`, expected a sequence at line 1 column 2: [1")
    );
}

/// Returns the deltas of bytes that arrive in these pieces.
fn replay<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    decode(&payloads::<Messages>(pieces).iter().map(String::as_str).collect::<Vec<_>>())
}

macro_rules! documented {
    ($name:literal) => {
        include_bytes!(concat!("../../tests/fixtures/", $name, ".body"))
    };
}

#[test]
fn documented_streams() {
    let replay = |bytes: &[u8]| replay([bytes]);
    insta::assert_snapshot!(replay(documented!("text")), @"Hello ! ; 25+15(0,0,0) |stop");
    insta::assert_snapshot!(replay(documented!("tool_use")), @r#"Okay ,  let 's  check  the  weather  for  San  Francisco ,  CA : ; 0+toolu_01T1x1fJ34qAmk2tNTrN7Up6:get_weather 0:{"location": 0: "San 0: Francisc 0:o, 0: CA"} 0. 472+89(0,0,0) |tool_calls"#);
    insta::assert_snapshot!(replay(documented!("thinking")), @r#"~I need to find the GCD of 1071 and 462 using the Euclidean algorithm.⏎⏎1071 = 2 × 462 + 147~ ~⏎462 = 3 × 147 + 21~ ~⏎147 = 7 × 21 + 0~ ~⏎The remainder is 0, so GCD(1071, 462) = 21.~ ;{"anthropic":{"signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds..."}} The greatest common divisor of 1071 and 462 is **21**. ; |stop"#);
    insta::assert_snapshot!(replay(documented!("web_search")), @r#"I'll check  the current weather in New York City for you . ; $web_search{"query":"weather NYC today"} ;{"anthropic":{"server":"{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_014hJH82Qum7Td6UV8gDXThB\",\"name\":\"web_search\",\"input\":{\"query\":\"weather NYC today\"}}"}} ;{"anthropic":{"server":"{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"srvtoolu_014hJH82Qum7Td6UV8gDXThB\",\"content\":[{\"type\":\"web_search_result\",\"title\":\"Weather in New York City in May 2025 (New York) - detailed Weather Forecast for a month\",\"url\":\"https://world-weather.info/forecast/usa/new_york/may-2025/\",\"encrypted_content\":\"Ev0DCioIAxgCIiQ3NmU4ZmI4OC1k...\",\"page_age\":null}]}"}} Here's the current weather information for New York  City:⏎⏎# Weather  in New York City ⏎⏎ ; 10682+510(0,0,0) |stop"#);
    insta::assert_snapshot!(replay(documented!("error")), @r#"Hello !overloaded: api.anthropic.com broke off its answer: Overloaded"#);
    insta::assert_snapshot!(replay(documented!("parallel")), @r#";{"anthropic":{"signature":"EosnCkYICxIMMb3LzNrMu..."}} ;{"anthropic":{"redacted":"EmwKAhgBEgy3va3pzix/LafPsn4a..."}} 0+toolu_01:get_weather 0:{"location": "Zür 0:ich"} 0. 1+toolu_02:get_time 1. 2051+120(1800,248,64) |tool_calls"#);
}

/// Generates events that need not belong together.
fn any_event() -> impl Strategy<Value = String> {
    let blocks = [
        r#"{"type":"text","text":"x"}"#,
        r#"{"type":"thinking","thinking":"","signature":""}"#,
        r#"{"type":"redacted_thinking","data":"d"}"#,
        r#"{"type":"tool_use","id":"a","name":"f","input":{"a":1}}"#,
        r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{}}"#,
    ];
    let deltas = [
        r#"{"type":"text_delta","text":"t"}"#,
        r#"{"type":"thinking_delta","thinking":"h"}"#,
        r#"{"type":"signature_delta","signature":"s"}"#,
        r#"{"type":"input_json_delta","partial_json":"{}"}"#,
        r#"{"type":"citations_delta","citation":{}}"#,
    ];
    let index = prop_oneof![0..3_u64, Just(u64::MAX)];
    prop_oneof![
        (index.clone(), prop::sample::select(blocks.to_vec())).prop_map(|(index, block)| start(index, block)),
        (index.clone(), prop::sample::select(deltas.to_vec())).prop_map(|(index, json)| delta(index, json)),
        index.prop_map(stop),
        prop::sample::select(vec![ending("null"), ending("\"tool_use\""), STOPPED.to_owned()]),
    ]
}

proptest! {
    /// Each call that begins ends once, whatever a server sends, and its deltas come before its
    /// end.
    #[test]
    fn calls_end_once_in_any_order_of_events(events in prop::collection::vec(any_event(), 0..24)) {
        let events: Vec<_> = events.iter().map(String::as_str).chain([STOPPED]).collect();
        let mut decoder = Decoder::new(Arc::new(Anthropic::new("m").server().clone()));
        let mut deltas = Deltas::new();
        for event in events {
            decoder.decode(event, &mut deltas).unwrap();
        }
        decoder.finish(&mut deltas).unwrap();
        let mut open = Vec::new();
        for delta in &deltas {
            match delta {
                ModelDelta::CallStart { slot, .. } => open.push(*slot),
                ModelDelta::CallArguments { slot, .. } => prop_assert!(open.contains(slot)),
                ModelDelta::CallEnd { slot, .. } => {
                    prop_assert!(open.contains(slot));
                    open.retain(|other| other != slot);
                }
                _ => {}
            }
        }
        prop_assert!(open.is_empty());
        prop_assert!(matches!(deltas.back(), Some(ModelDelta::Stop(_))));
    }
}
