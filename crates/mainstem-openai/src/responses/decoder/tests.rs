//! Decoding: the documented events, whole items, odd orders, failures, and invalid data.

use mainstem_testing::provider::payloads;
use proptest::prelude::*;

use super::*;
use crate::OpenAiResponses;

/// Returns the deltas of some payloads in short: `text`, `~thinking~`, `.` for an ended block with
/// what is kept of it, `0+id:name`, `0:arguments`, `0.` for an ended call, `7+2` for usage,
/// `|stop`, `!kind: message`.
fn decode(payloads: &[&str]) -> String {
    let mut decoder = Decoder::new(Arc::new(OpenAiResponses::new("m").server().clone()));
    let mut deltas = Deltas::new();
    let mut decoded = payloads
        .iter()
        .try_for_each(|data| if decoder.is_done() { Ok(()) } else { decoder.decode(data, &mut deltas) });
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
        ModelDelta::BlockEnd { opaque } if opaque.is_empty() => ".".to_owned(),
        ModelDelta::BlockEnd { opaque } => format!(".{}", serde_json::to_string(opaque).unwrap()),
        ModelDelta::CallStart { slot, id, name } => {
            format!("{slot}+{}:{name}", id.as_ref().map_or("", |id| id.as_str()))
        }
        ModelDelta::CallArguments { slot, delta } => format!("{slot}:{delta}"),
        ModelDelta::CallEnd { slot, opaque } if opaque.is_empty() => format!("{slot}."),
        ModelDelta::ServerToolCall { name, input } => format!("${name}{input}"),
        ModelDelta::Usage(usage) => format!(
            "{}+{}({},{},{})",
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens
        ),
        ModelDelta::Stop(reason) => format!("|{reason}"),
        other => panic!("{other:?} is not for this decoder to say"),
    }
}

const COMPLETED: &str = r#"{"type":"response.completed","response":{"status":"completed"}}"#;

/// Returns an event about the item of this index.
fn event(kind: &str, index: u64, fields: &str) -> String {
    format!(r#"{{"type":"response.{kind}","output_index":{index},{fields}}}"#)
}

/// The deltas of some events of a response that completes.
fn check(events: &[String], expected: &str) {
    let events: Vec<_> = events.iter().map(String::as_str).chain([COMPLETED]).collect();
    assert_eq!(decode(&events), expected, "{events:#?}");
}

fn text(index: u64, delta: &str) -> String {
    event("output_text.delta", index, &format!(r#""delta":"{delta}""#))
}

fn thought(index: u64, delta: &str) -> String {
    event("reasoning_summary_text.delta", index, &format!(r#""delta":"{delta}","summary_index":0"#))
}

const SAYS: &str = r#""item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}"#;
const CALLS: &str = r#""item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#;
const CALLING: &str = r#""item":{"type":"function_call","call_id":"c","name":"f","arguments":""}"#;

#[test]
fn what_comes_in_pieces_is_not_read_again() {
    let done = |index| event("output_item.done", index, SAYS);
    check(&[text(0, "a"), text(0, "b"), done(0)], "a b . |stop");
    check(&[done(0)], "a b . |stop");
    let late = event("output_text.done", 0, r#""text":"ab""#);
    check(&[text(0, "ab"), late.clone(), done(0)], "ab . |stop");
    check(&[late, done(0)], "ab . |stop");
    check(&[text(0, ""), text(0, "a")], "a |stop");
    check(&[text(0, "a"), event("output_text.done", 0, r#""text":"a""#)], "a |stop");
}

#[test]
fn each_message_is_a_block_of_its_own() {
    let phased = |phase: &str| {
        format!(
            r#""item":{{"type":"message","phase":{phase},"content":[{{"type":"output_text","text":"a"}}]}}"#
        )
    };
    let done = |index, phase| event("output_item.done", index, &phased(phase));
    check(&[done(0, "null"), done(1, "null")], "a . a . |stop");
    check(
        &[text(0, "hm"), done(0, "\"commentary\""), done(1, "\"final_answer\"")],
        r#"hm .{"openai":{"phase":"commentary"}} a .{"openai":{"phase":"final_answer"}} |stop"#,
    );
    // An empty phase is discarded: there would be no block of text for it.
    let empty = r#""item":{"type":"message","phase":"commentary","content":[]}"#;
    check(&[event("output_item.done", 0, empty)], "|stop");
    check(&[text(0, "a"), text(1, "b"), text(0, "c")], "a . b . c |stop");
    check(&[text(0, "a"), text(1, "b"), done(0, "\"commentary\"")], "a . b |stop");
}

#[test]
fn a_refusal_is_text_and_the_reason_to_stop() {
    let piece = event("refusal.delta", 0, r#""delta":"no""#);
    check(&[piece.clone(), piece], "no no |refusal");
    check(&[event("refusal.done", 0, r#""refusal":"no""#)], "no |refusal");
    check(&[event("refusal.done", 0, r#""refusal":"""#)], "|stop");
    let whole = r#""item":{"type":"message","content":[{"type":"refusal","refusal":"no"}]}"#;
    check(&[event("output_item.done", 0, whole)], "no . |refusal");
}

#[test]
fn calls_are_told_apart_by_index() {
    let begin = |index, id: &str| event("output_item.added", index, &CALLING.replace("\"c\"", id));
    let piece =
        |index, delta: &str| event("function_call_arguments.delta", index, &format!(r#""delta":"{delta}""#));
    let end = |index| event("output_item.done", index, CALLS);
    check(
        &[begin(4, "\"a\""), begin(7, "\"b\""), piece(7, "1"), piece(4, "2"), piece(4, "3"), end(4), end(7)],
        "0+a:f 1+b:f 1:1 0:2 0:3 0. 1. |tool_calls",
    );
    check(&[end(0), end(1)], "0+c:f 0:{} 0. 1+c:f 1:{} 1. |tool_calls");
    check(&[begin(0, "\"a\""), end(0)], "0+a:f 0:{} 0. |tool_calls");
    // Without an end.
    check(&[begin(0, "\"a\""), piece(0, "{}")], "0+a:f 0:{} 0. |tool_calls");
    let all = event("function_call_arguments.done", 0, r#""arguments":"{}","name":"f""#);
    check(&[begin(0, "\"a\""), all.clone()], "0+a:f 0:{} 0. |tool_calls");
    check(&[begin(0, "\"a\""), piece(0, "{}"), all, end(0)], "0+a:f 0:{} 0. |tool_calls");
    // Arguments of a call that was not announced wait for it.
    check(&[piece(0, "{}"), end(0)], "0+c:f 0:{} 0. |tool_calls");
    // Without an id the loop generates one.
    check(&[begin(0, "null"), begin(1, "\"\"")], "0+:f 1+:f 0. 1. |tool_calls");
    // Two items of one index, one after the other.
    check(&[begin(0, "\"a\""), end(0), begin(0, "\"b\""), end(0)], "0+a:f 0:{} 0. 1+b:f 1:{} 1. |tool_calls");
}

#[test]
fn reasoning_is_kept_whole() {
    let item = |fields: &str| {
        format!(
            r#""item":{{"type":"reasoning","id":"rs","summary":[{{"type":"summary_text","text":"a"}},{{"type":"summary_text","text":"b"}}],{fields}}}"#
        )
    };
    let done = |fields: &str| event("output_item.done", 0, &item(fields));
    let kept = r#".{"openai":{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"e"}}"#;
    let encrypted = done(r#""encrypted_content":"e","status":"completed","content":null"#);
    check(std::slice::from_ref(&encrypted), &format!("~a⏎⏎b~ {kept} |stop"));
    // An announced item may be incomplete; the done one counts.
    let begun = event("output_item.added", 0, &item(r#""encrypted_content":"x""#));
    check(&[begun, thought(0, "a"), encrypted], &format!("~a~ {kept} |stop"));
    // Reasoning that can't be sent back is discarded.
    check(&[done(r#""encrypted_content":null"#)], "~a⏎⏎b~ . |stop");
    // Without a summary, there is still opaque data to store.
    let silent = r#""item":{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"e"}"#;
    let silent = event("output_item.done", 0, silent);
    let kept_silent = r#".{"openai":{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"e"}}"#;
    check(std::slice::from_ref(&silent), &format!("{kept_silent} |stop"));
    // It belongs to no other item's block.
    check(&[text(1, "a"), silent], &format!("a . {kept_silent} |stop"));
}

#[test]
fn summaries_have_paragraphs() {
    let part = |index: u64| {
        event("reasoning_summary_part.added", 0, &format!(r#""summary_index":{index},"part":{{"text":""}}"#))
    };
    check(&[part(0), thought(0, "a"), part(1), thought(0, "b")], "~a~ ~⏎⏎~ ~b~ |stop");
    let raw = event("reasoning_text.delta", 0, r#""delta":"hm","content_index":0"#);
    check(&[raw.clone(), raw], "~hm~ ~hm~ |stop");
    let open = r#""item":{"type":"reasoning","id":"rs","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}"#;
    check(&[event("output_item.done", 0, open)], "~hm~ . |stop");
    let late = event("reasoning_text.done", 0, r#""text":"hm""#);
    check(&[late.clone(), late], "~hm~ |stop");
}

#[test]
fn every_ending() {
    let end = |kind: &str, fields: &str| {
        decode(&[&text(0, "a"), &format!(r#"{{"type":"response.{kind}","response":{{{fields}}}}}"#)])
    };
    assert_eq!(end("completed", ""), "a |stop");
    let incomplete =
        |reason: &str| end("incomplete", &format!(r#""incomplete_details":{{"reason":{reason}}}"#));
    assert_eq!(incomplete("\"max_output_tokens\""), "a |length");
    assert_eq!(incomplete("\"content_filter\""), "a |content_filter");
    assert_eq!(incomplete("\"steered\""), "a |steered");
    assert_eq!(incomplete("null"), "a |incomplete");
    assert_eq!(end("incomplete", r#""incomplete_details":null"#), "a |incomplete");
    assert_eq!(end("cancelled", ""), "a |cancelled");
    let usage = r#""usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":3,"cache_write_tokens":1},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":13}"#;
    assert_eq!(end("completed", usage), "a 9+4(3,1,2) |stop");
    assert_eq!(end("completed", r#""usage":{"input_tokens":9}"#), "a 9+0(0,0,0) |stop");
    assert_eq!(end("completed", r#""usage":null"#), "a |stop");
    // A call that was cut off is not complete because it is a call.
    let call = event("output_item.added", 0, CALLING);
    let cut =
        r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}"#;
    assert_eq!(decode(&[&call, cut]), "0+c:f 0. |length");
}

#[test]
fn an_answer_without_an_ending_broke_off() {
    let cut = "!transport: api.openai.com ended the connection before its answer was complete";
    assert_eq!(decode(&[]), cut);
    assert_eq!(decode(&["[DONE]"]), cut);
    assert_eq!(decode(&[&text(0, "a"), "", " [DONE] "]), format!("a {cut}"));
    assert_eq!(decode(&[&text(0, "a"), COMPLETED, "[DONE]"]), "a |stop");
}

#[test]
fn what_is_unknown_is_ignored() {
    let unknown = [
        r#"{"type":"response.queued","response":1}"#,
        r#"{"type":"response.output_text.annotation.added","annotation":{}}"#,
        r#"{"type":"response.web_search_call.searching","output_index":"?","delta":{}}"#,
        r#"{"type":"keepalive"}"#,
        "{}",
    ];
    let search = event("output_item.done", 3, r#""item":{"type":"file_search_call","id":"fs","queries":[]}"#);
    let mut events: Vec<_> = unknown.map(str::to_owned).into();
    events.extend([search, text(4, "a")]);
    check(&events, "a |stop");
}

#[test]
fn calls_of_the_vendors_own_tools_are_reported_and_kept() {
    let added = event(
        "output_item.added",
        0,
        r#""item":{"type":"web_search_call","id":"ws","status":"in_progress"}"#,
    );
    let item =
        r#"{"id":"ws","type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}"#;
    let done = event("output_item.done", 0, &format!(r#""item":{item}"#));
    let code = r#"{"id":"ci","type":"code_interpreter_call","status":"completed","code":"1","container_id":"c","outputs":null}"#;
    let code_done = event("output_item.done", 1, &format!(r#""item":{code}"#));
    let expected = format!(
        r#"$web_search{{"type":"search","query":"x"}} .{{"openai":{item}}} $code_interpreter"1" .{{"openai":{code}}} a |stop"#
    );
    check(&[added, done, code_done, text(2, "a")], &expected);
}

#[test]
fn errors_in_mid_stream() {
    let check = |payload: &str, expected: &str| {
        assert_eq!(decode(&[&text(0, "a"), payload]), format!("a !{expected}"))
    };
    check(
        r#"{"type":"error","code":"rate_limit_exceeded","message":"Slow down","param":null,"sequence_number":1}"#,
        "rate_limited: api.openai.com broke off its answer: Slow down",
    );
    // As in practice.
    check(
        r#"{"type":"error","sequence_number":2,"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"Pay","param":null}}"#,
        "quota_exceeded: api.openai.com broke off its answer: Pay",
    );
    check(
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"Sorry"}}}"#,
        "server_error: api.openai.com broke off its answer: Sorry",
    );
    check(
        r#"{"type":"response.failed","response":{"error":{"code":"invalid_prompt","message":"Not so"}}}"#,
        "invalid_request: api.openai.com broke off its answer: Not so",
    );
    check(
        r#"{"type":"response.failed","response":{"error":null}}"#,
        "server_error: api.openai.com broke off its answer and did not say why",
    );
    check(r#"{"type":"error"}"#, "server_error: api.openai.com broke off its answer and did not say why");
    // From a gateway.
    check(
        r#"{"error":{"code":502,"message":"Gone"}}"#,
        "server_error: api.openai.com broke off its answer: Gone",
    );
}

#[test]
fn nonsense_is_quoted_with_its_place() {
    let says = "!protocol: api.openai.com sent what is no response:";
    for (payload, expected) in [
        ("hello", "expected value at line 1 column 1: hello"),
        ("{\"type\":", "EOF while parsing a value at line 1 column 8: {\"type\":"),
        (
            r#"{"type":"response.output_text.delta"}"#,
            r#"missing field `delta` at line 1 column 37: {"type":"response.output_text.delta"}"#,
        ),
        (
            r#"{"type":"response.completed"}"#,
            r#"missing field `response` at line 1 column 29: {"type":"response.completed"}"#,
        ),
    ] {
        assert_eq!(decode(&[payload]), format!("{says} {expected}"));
    }
}

fn whole(body: &str) -> String {
    let mut deltas = Deltas::new();
    let decoded =
        Decoder::new(Arc::new(OpenAiResponses::new("m").server().clone())).decode_whole(body, &mut deltas);
    shown(&deltas, decoded)
}

#[test]
fn an_answer_of_one_piece() {
    insta::assert_snapshot!(whole(include_str!("../../../tests/fixtures/responses_whole.body")), @r#"~**Finding the weather**⏎⏎I need both cities — Paris, 東京.~ .{"openai":{"id":"rs_6820f383d7c08191846711c5df8233bc0ac5ba57aafcbac7","type":"reasoning","encrypted_content":"gAAAAABoISQ24OyVRYbkwhole==","summary":[{"type":"summary_text","text":"**Finding the weather**"},{"type":"summary_text","text":"I need both cities — Paris, 東京."}]}} {"colour": "red"} .{"openai":{"phase":"final_answer"}} 34+23(25,0,8) |stop"#);
    let call = format!("{{{}}}", CALLS.replace("\"item\":{", "").trim_end_matches('}'));
    assert_eq!(whole(&format!(r#"{{"output":[{call},{call}]}}"#)), "0+c:f 0:{} 0. 1+c:f 1:{} 1. |tool_calls");
    assert_eq!(
        whole(r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}"#),
        "|length"
    );
    assert_eq!(
        whole(r#"{"status":"failed","error":{"code":"server_error","message":"Sorry"},"output":[]}"#),
        "!server_error: api.openai.com broke off its answer: Sorry"
    );
    assert_eq!(
        whole(r#"{"error":{"code":429,"message":"later"}}"#),
        "!rate_limited: api.openai.com broke off its answer: later"
    );
    let says = "!protocol: api.openai.com sent what is no response:";
    assert_eq!(whole("{}"), format!("{says} it has no output: {{}}"));
    let queued = r#"{"status":"queued","output":[]}"#;
    assert_eq!(whole(queued), format!("{says} it is queued: {queued}"));
    // A server that does not stream items sends them at the end.
    let late = format!(r#"{{"type":"response.completed","response":{{"output":[{call}]}}}}"#);
    assert_eq!(decode(&[&late]), "0+c:f 0:{} 0. |tool_calls");
}

fn replay<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    decode(&payloads::<Responses>(pieces).iter().map(String::as_str).collect::<Vec<_>>())
}

/// Streams as <https://platform.openai.com/docs/api-reference/responses-streaming> has them event
/// by event, with all the fields of the response object that it lists.
macro_rules! documented {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/fixtures/responses_", $name, ".body")).as_slice()
    };
}

#[test]
fn documented_streams() {
    insta::assert_snapshot!(replay([documented!("text")]), @r#"Hi  there ! Où  est- ce 🌍 ?⏎ . 37+11(0,0,0) |stop"#);
    insta::assert_snapshot!(replay([documented!("reasoning_tools")]), @r#"~**Finding~ ~ the weather**~ ~⏎⏎~ ~I need~ ~ both cities — Paris, 東京.~ .{"openai":{"id":"rs_6820f383d7c08191846711c5df8233bc0ac5ba57aafcbac7","type":"reasoning","encrypted_content":"gAAAAABoISQ24OyVRYbkwhole==","summary":[{"type":"summary_text","text":"**Finding the weather**"},{"type":"summary_text","text":"I need both cities — Paris, 東京."}]}} I look  it up. .{"openai":{"phase":"commentary"}} 2+call_2:get_weather 2:{"city": 3+call_3:get_weather 3:{"city": 2:"Paris"} 3:"東京"} 2. 3. 215+170(128,0,96) |tool_calls"#);
    insta::assert_snapshot!(replay([documented!("refusal")]), @r#"I'm sorry,  I can't. . 81+11(0,0,0) |refusal"#);
    insta::assert_snapshot!(replay([documented!("incomplete")]), @r#"Once  upon . 12+16(0,0,0) |length"#);
    insta::assert_snapshot!(replay([documented!("failed")]), @r#"!rate_limited: api.openai.com broke off its answer: Rate limit reached for gpt-5.1 on tokens per min (TPM): Limit 30000."#);
}

/// Events of two items in any order; some are invalid.
const EVENTS: [&str; 12] = [
    r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","name":"f"}}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message"}}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"reasoning"}}"#,
    r#"{"type":"response.output_text.delta","output_index":1,"delta":"a"}"#,
    r#"{"type":"response.output_text.done","output_index":0,"text":"a"}"#,
    r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"a"}"#,
    r#"{"type":"response.reasoning_summary_part.added","output_index":1,"summary_index":1}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"1"}"#,
    r#"{"type":"response.function_call_arguments.done","output_index":1,"arguments":"1"}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","arguments":"2"}}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","phase":"p","content":[{"text":"b"}]}}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning","encrypted_content":"e","summary":[{"text":"c"}]}}"#,
];

/// Calls begin before they continue and end, and each ends once; opaque data is stored with a block
/// of its kind.
fn check_order(deltas: &Deltas) {
    let (mut calls, mut thinking) = (Vec::new(), None);
    for delta in deltas {
        match delta {
            ModelDelta::Text(_) => thinking = Some(false),
            ModelDelta::Thinking(_) => thinking = Some(true),
            ModelDelta::BlockEnd { opaque } => {
                let kept_text = opaque.get("openai").is_some_and(|kept| kept.get("phase").is_some());
                assert!(thinking.is_some() || !opaque.is_empty() && !kept_text, "{deltas:?}");
                thinking = None;
            }
            ModelDelta::CallStart { slot, .. } => {
                assert!(!calls.contains(slot), "{deltas:?}");
                calls.push(*slot);
                thinking = None;
            }
            ModelDelta::CallArguments { slot, .. } => assert!(calls.contains(slot), "{deltas:?}"),
            ModelDelta::CallEnd { slot, .. } => {
                assert!(calls.contains(slot), "{deltas:?}");
                calls.retain(|call| call != slot);
            }
            _ => {}
        }
    }
    assert!(calls.is_empty(), "{deltas:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn events_in_any_order_make_sense(events in prop::collection::vec(prop::sample::select(&EVENTS[..]), 0..12)) {
        let mut decoder = Decoder::new(Arc::new(OpenAiResponses::new("m").server().clone()));
        let mut deltas = Deltas::new();
        for event in events.into_iter().chain([COMPLETED]) {
            decoder.decode(event, &mut deltas).unwrap();
        }
        decoder.finish(&mut deltas).unwrap();
        check_order(&deltas);
    }
}
