//! Decoding: the standard, its dialects, recorded streams, and invalid data.

use mainstem_testing::provider::payloads;
use proptest::prelude::*;

use super::*;
use crate::OpenAi;

/// Returns the deltas of some payloads in short: `text`, `~thinking~`, `0+id:name`, `0:arguments`,
/// `0.` for an ended call, `7+2` for usage, `|stop`, `!kind: message`.
fn decode(payloads: &[&str]) -> String {
    decode_with(payloads, |_| {})
}

fn decode_with(payloads: &[&str], before_each: impl Fn(&mut Decoder)) -> String {
    let mut decoder = Decoder::new(Arc::new(OpenAi::new("m").server().clone()));
    let mut deltas = Deltas::new();
    let mut decoded = payloads.iter().try_for_each(|payload| {
        before_each(&mut decoder);
        decoder.decode(payload, &mut deltas)
    });
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
        ModelDelta::Thinking(text) => format!("~{text}~"),
        ModelDelta::CallStart { slot, id, name } => {
            format!("{slot}+{}:{name}", id.as_ref().map_or("", |id| id.as_str()))
        }
        ModelDelta::CallArguments { slot, delta } => format!("{slot}:{}", delta.replace('\n', "⏎")),
        ModelDelta::CallEnd { slot, opaque } if opaque.is_empty() => format!("{slot}."),
        ModelDelta::CallEnd { slot, opaque } => format!("{slot}.{}", serde_json::to_string(opaque).unwrap()),
        ModelDelta::Usage(usage) => format!(
            "{}+{}({},{},{})",
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens
        ),
        ModelDelta::Stop(reason) => format!("|{reason}"),
        other => panic!("{other:?} is not for a decoder to say"),
    }
}

/// Returns a chunk with a delta.
fn delta(delta: &str) -> String {
    format!(
        r#"{{"id":"c","object":"chat.completion.chunk","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#
    )
}

/// Returns a chunk with a reason to finish.
fn finish(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":{reason}}}]}}"#)
}

/// Checks the deltas of chunks that a stream ends with `stop` and `[DONE]`.
fn check(deltas: &[&str], expected: &str) {
    let mut chunks: Vec<_> = deltas.iter().map(|json| delta(json)).collect();
    chunks.extend([finish("\"stop\""), "[DONE]".to_owned()]);
    let chunks: Vec<_> = chunks.iter().map(String::as_str).collect();
    assert_eq!(decode(&chunks), expected, "{deltas:?}");
}

#[test]
fn content() {
    check(
        &[r#"{"role":"assistant","content":""}"#, r#"{"content":"Hé\n"}"#, r#"{"content":"llo"}"#],
        "Hé⏎ llo |stop",
    );
    check(&[r#"{"role":"assistant","content":null,"refusal":null,"tool_calls":null}"#], "|stop");
    check(&[r#"{"content":"a\u00e9\ud83d\ude00"}"#], "aé😀 |stop");
    check(
        &[r#"{"reasoning_content":"hm","content":null}"#, r#"{"reasoning_content":null,"content":"a"}"#],
        "~hm~ a |stop",
    );
    check(&[r#"{"reasoning":"hm","content":""}"#, r#"{"content":"a"}"#], "~hm~ a |stop");
    check(&[r#"{"reasoning":"hm","reasoning_content":"hm"}"#], "~hm~ |stop");
    check(&[r#"{"reasoning":"hm","reasoning_content":""}"#], "~hm~ |stop");
    check(&[r#"{"refusal":"I'm sorry"}"#, r#"{"refusal":", no"}"#], "I'm sorry , no |refusal");
    check(
        &[
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"h"},{"type":"text","text":"m"}]}]}"#,
            r#"{"content":[{"type":"text","text":"a"}]}"#,
            r#"{"content":"b"}"#,
        ],
        "~hm~ a b |stop",
    );
    check(&[r#"{"obfuscation":"x","annotations":[],"audio":null}"#], "|stop");
}

#[test]
fn calls() {
    let standard = [
        r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}"#,
        r#"{"tool_calls":[{"index":1,"id":"c2","function":{"name":"g","arguments":"{}"}}]}"#,
    ];
    check(&standard, r#"0+c1:f 0:{"a" 0::1} 1+c2:g 1:{} 0. 1. |tool_calls"#);
    // Interleaved, and two in one delta; indexes from 1, as litellm numbers them.
    check(
        &[
            r#"{"tool_calls":[{"index":1,"id":"a","function":{"name":"f"}},{"index":2,"id":"b","function":{"name":"g"}}]}"#,
            r#"{"tool_calls":[{"index":2,"function":{"arguments":"2"}},{"index":1,"function":{"arguments":"1"}}]}"#,
        ],
        "0+a:f 1+b:g 1:2 0:1 0. 1. |tool_calls",
    );
    check(
        &[r#"{"function_call":{"name":"f","arguments":"{"}}"#, r#"{"function_call":{"arguments":"}"}}"#],
        "0+:f 0:{ 0:} 0. |tool_calls",
    );
}

#[test]
fn calls_of_servers_that_do_not_number_them() {
    // Ollama: index 0 for all.
    check(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}]}"#,
        ],
        "0+a:f 0:{} 1+b:f 1:{} 0. 1. |tool_calls",
    );
    // Gemini: no index, the id in the first fragment only, a signature to send back, perhaps alone.
    check(
        &[
            r#"{"tool_calls":[{"id":"a","extra_content":{"google":{"thought_signature":"s"}},"function":{"name":"f","arguments":"{"}}]}"#,
            r#"{"tool_calls":[{"id":"","function":{"arguments":"}"}}]}"#,
            r#"{"tool_calls":[{"id":"b","function":{"name":"f","arguments":"{}"}}]}"#,
            r#"{"tool_calls":[{"extra_content":{"google":{"thought_signature":"t"}}}]}"#,
        ],
        r#"0+a:f 0:{ 0:} 1+b:f 1:{} 0.{"extra_content":{"google":{"thought_signature":"s"}}} 1.{"extra_content":{"google":{"thought_signature":"t"}}} |tool_calls"#,
    );
    // Without index and id, a name begins a call; also with an index that never changes.
    let nameless = r#"{"tool_calls":[{"function":{"name":"f","arguments":"1"}},{"function":{"name":"f","arguments":"2"}}]}"#;
    check(&[nameless], "0+:f 0:1 1+:f 1:2 0. 1. |tool_calls");
    let numbered = r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"f","arguments":"1"}}]}"#;
    check(&[numbered, numbered], "0+:f 0:1 1+:f 1:1 0. 1. |tool_calls");
    // Interleaved without index, distinguished by id.
    check(
        &[
            r#"{"tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"b","function":{"name":"g"}}]}"#,
            r#"{"tool_calls":[{"id":"a","function":{"arguments":"1"}},{"id":"b","function":{"arguments":"2"}}]}"#,
        ],
        "0+a:f 1+b:g 0:1 1:2 0. 1. |tool_calls",
    );
}

#[test]
fn calls_whose_id_or_name_is_odd() {
    // Repeated in each fragment.
    let repeated = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}]}"#;
    check(&[repeated, repeated], "0+a:f 0:1 0:1 0. |tool_calls");
    // The name only.
    check(
        &[repeated, r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"2"}}]}"#],
        "0+a:f 0:1 0:2 0. |tool_calls",
    );
    check(
        &[repeated, r#"{"tool_calls":[{"index":0,"function":{"name":"g","arguments":"2"}}]}"#],
        "0+a:f 0:1 1+:g 1:2 0. 1. |tool_calls",
    );
    // Separately: the id waits for the name.
    check(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a"}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"f"}}]}"#,
        ],
        "0+a:f 0. |tool_calls",
    );
    // Late, or missing: the call is made without.
    check(
        &[
            r#"{"tool_calls":[{"index":0,"function":{"name":"f"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a"}]}"#,
        ],
        "0+:f 0. |tool_calls",
    );
    check(&[r#"{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}"#], "0+: 0:{} 0. |tool_calls");
    // LM Studio's empty call.
    check(&[r#"{"tool_calls":[{"id":"","type":"function"}]}"#, r#"{"tool_calls":[]}"#], "|stop");
    check(
        &[r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"b":1,"a":[]}}}]}"#],
        r#"0+a:f 0:{"b":1,"a":[]} 0. |tool_calls"#,
    );
    check(
        &[r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":null}}]}"#],
        "0+a:f 0. |tool_calls",
    );
}

#[test]
fn every_finish_reason() {
    for (reason, expected) in [
        ("\"stop\"", "|stop"),
        ("\"length\"", "|length"),
        ("\"model_length\"", "|length"),
        ("\"tool_calls\"", "|tool_calls"),
        ("\"function_call\"", "|tool_calls"),
        ("\"content_filter\"", "|content_filter"),
        ("\"insufficient_system_resource\"", "|insufficient_system_resource"),
    ] {
        assert_eq!(decode(&[&finish(reason)]), expected, "without [DONE]");
    }
    let cut = "!transport: api.openai.com ended the connection before its answer was complete";
    for reason in ["null", "\"\""] {
        assert_eq!(decode(&[&finish(reason), "[DONE]"]), "|stop");
        assert_eq!(decode(&[&finish(reason)]), cut);
    }
    // A gateway has failed, and does not say why.
    assert_eq!(decode(&[&delta(r#"{"content":"a"}"#), &finish("\"error\""), "[DONE]"]), format!("a {cut}"));
    assert_eq!(decode(&[&delta(r#"{"content":"a"}"#)]), format!("a {cut}"));
    assert_eq!(decode(&[&delta(r#"{"content":"a"}"#), "[DONE]", "[DONE]"]), "a |stop");
    assert_eq!(decode(&[" [DONE]\n", ""]), "|stop");
    let call = delta(r#"{"tool_calls":[{"index":0,"function":{"name":"f"}}]}"#);
    assert_eq!(decode(&[&call, "[DONE]"]), "0+:f 0. |tool_calls");
}

#[test]
fn usage_comes_last_wherever_it_stood() {
    let done = finish("\"stop\"");
    let openai = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":3,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":2}}}"#;
    assert_eq!(decode(&[&done, openai, "[DONE]"]), "9+4(3,0,2) |stop");
    let growing = |text: &str, tokens: u32| {
        format!(
            r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}],"usage":{{"prompt_tokens":1,"completion_tokens":{tokens}}}}}"#
        )
    };
    assert_eq!(decode(&[&growing("a", 1), &growing("b", 2), &done]), "a b 1+2(0,0,0) |stop");
    let deepseek =
        r#"{"choices":[],"usage":{"prompt_tokens":9,"prompt_cache_hit_tokens":8,"completion_tokens":null}}"#;
    assert_eq!(decode(&[&done, deepseek]), "9+0(8,0,0) |stop");
    let vllm = r#"{"choices":null,"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    assert_eq!(decode(&[&done, vllm]), "1+1(0,0,0) |stop");
    let openrouter = r#"{"usage":{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":4}}}"#;
    assert_eq!(decode(&[&done, openrouter]), "5+1(0,4,0) |stop");
    assert_eq!(decode(&[r#"{"choices":[],"usage":null}"#, &done]), "|stop");
}

#[test]
fn chunks_without_a_say() {
    let azure = r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}"#;
    let filter = r#"{"choices":[{"content_filter_offsets":{"check_offset":1},"content_filter_results":{},"finish_reason":null,"index":0}]}"#;
    let second = r#"{"choices":[{"index":1,"delta":{"content":"another answer"}},{"index":0,"delta":{"content":"b"}}]}"#;
    let text = delta(r#"{"content":"a"}"#);
    assert_eq!(decode(&[azure, &text, filter, "{}", second, &finish("\"stop\"")]), "a b |stop");
}

#[test]
fn errors_in_mid_stream() {
    let text = delta(r#"{"content":"a"}"#);
    let check = |payload: &str, expected: &str| {
        assert_eq!(decode(&[&text, payload, &text]), format!("a !{expected}"));
    };
    check(
        r#"{"error":{"code":500,"message":"does not match","type":"server_error"}}"#,
        "server_error: api.openai.com broke off its answer: does not match",
    );
    check(
        r#"{"error":{"message":"Slow down","type":"requests","code":"rate_limit_exceeded"}}"#,
        "rate_limited: api.openai.com broke off its answer: Slow down",
    );
    check(
        r#"{"id":"g","error":{"code":502,"message":"Gone"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
        "server_error: api.openai.com broke off its answer: Gone",
    );
    check(
        r#"{"object":"error","message":"Too long","type":"BadRequestError","code":400}"#,
        "invalid_request: api.openai.com broke off its answer: Too long",
    );
}

#[test]
fn nonsense_is_quoted_with_its_place() {
    let says = "!protocol: api.openai.com sent what is no chat completion:";
    for (payload, expected) in [
        ("{\"choices\":[", "EOF while parsing a list at line 1 column 12: {\"choices\":["),
        ("hello", "expected value at line 1 column 1: hello"),
        ("{} {}", "trailing characters at line 1 column 4: {} {}"),
        (
            r#"{"choices":[{"delta":{"content":1}}]}"#,
            r#"invalid type: integer `1`, expected a string, a list of parts or null at line 1 column 33: {"choices":[{"delta":{"content":1}}]}"#,
        ),
        ("[DONE] [DONE]", "expected value at line 1 column 2: [DONE] [DONE]"),
    ] {
        assert_eq!(decode(&[payload]), format!("{says} {expected}"));
    }
    let long = decode(&[&"x".repeat(10_000)]);
    assert!(long.len() < 400 && long.ends_with("xxx…"), "{long}");
}

#[test]
fn an_answer_of_one_piece() {
    let whole = |body: &str| {
        let mut deltas = Deltas::new();
        let decoded =
            Decoder::new(Arc::new(OpenAi::new("m").server().clone())).decode_whole(body, &mut deltas);
        shown(&deltas, decoded)
    };
    assert_eq!(
        whole(include_str!("../../tests/fixtures/json_schema.body")),
        "{⏎  \"colour\": \"red\"⏎} 34+23(25,0,0) |stop"
    );
    assert!(whole(include_str!("../../tests/fixtures/gemma_chat.body")).ends_with(" 27+40(0,0,0) |length"));
    assert_eq!(
        whole(
            r#"{"choices":[{"message":{"content":null,"reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#
        ),
        "~hm~ 0+a:f 0:{} 1+b:f 1:{} 0. 1. |tool_calls"
    );
    assert_eq!(whole(r#"{"choices":[{"message":{"content":"a"}}]}"#), "a |stop");
    assert_eq!(
        whole(r#"{"error":{"code":429,"message":"later"}}"#),
        "!rate_limited: api.openai.com broke off its answer: later"
    );
    assert_eq!(
        whole("{}"),
        "!protocol: api.openai.com sent what is no chat completion: it has no choices: {}"
    );
}

/// Returns the deltas of recorded bytes.
fn replay(bytes: &[u8]) -> String {
    decode(&payloads::<ChatCompletions>([bytes]).iter().map(String::as_str).collect::<Vec<_>>())
}

macro_rules! recorded {
    ($name:literal) => {
        &include_bytes!(concat!("../../tests/fixtures/", $name, ".body"))[..]
    };
}

#[test]
fn recorded_streams() {
    insta::assert_snapshot!(replay(recorded!("chat_stream")), @r#"⏎ #  All ⏎ ⏎ #  Red ⏎ ⏎ #  Blue ⏎ ⏎ #  Green ⏎ ⏎ #  Yellow ⏎ ⏎ #  White ⏎ ⏎ #  Black 55+28(0,0,0) |stop"#);
    insta::assert_snapshot!(replay(recorded!("chat_after_tool")), @r#"None 213+2(157,0,0) |stop"#);
    insta::assert_snapshot!(replay(recorded!("chat_after_tool_auto")), @r#"True ⏎ ⏎ The  weather  in  Paris  in  Celsius  is   2 1 . |stop"#);
    insta::assert_snapshot!(replay(recorded!("chat_auto_first")), @r#"!server_error: api.openai.com broke off its answer: The model produced output that does not match the expected peg-native format"#);
    insta::assert_snapshot!(replay(recorded!("chat_parallel")), @r#"0+zr1OFaK9tnMboUXPhMfaDeWS1ZuIqWd1:get_weather 0:{ 0:⏎  " 0:city 0:": 0: " 0:Paris 0:", 0:⏎  " 0:unit 0:": 0: " 0:c 0:" 0:⏎} 0. 155+22(114,0,0) |tool_calls"#);
    insta::assert_snapshot!(replay(recorded!("chat_stream_tools_required")), @r#"0+RjszQZYfl0BVuxfJBpI31yiIe7LOywVC:get_weather 0:{ 0:⏎  " 0:city 0:": 0: " 0:Paris 0:", 0:⏎  " 0:unit 0:": 0: " 0:c 0:" 0:⏎} 0. 153+22(0,0,0) |tool_calls"#);
    insta::assert_snapshot!(replay(recorded!("chat_stream_tools_fewshot")), @r#"<tool_response > ⏎ sun ny ⏎ </ tool _ response > ⏎ ⏎ This  is  a  custom  function  that  returns  a  string  with  the  weather 's  name  in  French .  It 's  not  a  standard  function ,  but  it 's  a  custom  one  that  can  be  used  to  create  a  custom  function . ⏎ ⏎ You  can 384+60(211,0,0) |length"#);
    insta::assert_snapshot!(replay(recorded!("steered_first")), @r#"0+plxgT0NtQLmWc3Nlfe32Vj4ebCrrnX2C:search_docs 0:{ 0:⏎  " 0:query 0:": 0: " 0:search 0:_ 0:docs 0:", 0:⏎  " 0:limit 0:": 0: 1 0:0 0:0 0:0 0:0 0:0 0:0 0:0 0:0 0:0 0:0 0:0 0:0 0:0 0:0 0:0 0:⏎} 0. |tool_calls"#);
}

/// Chunks around a text, raw as between their quotation marks.
const FRAMES: [&str; 12] = [
    r#"{"id":"c","choices":[{"index":0,"delta":{"content":"$"}}]}"#,
    r#"{"id":"c","choices":[{"index":0,"delta":{"content":"$"}}],"usage":null}"#,
    r#"{"id":"d","choices":[{"index":0,"delta":{"content":"$"},"finish_reason":"length"}]}"#,
    r#"{"id":"$","choices":[{"index":0,"delta":{"content":"$"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning_content":"$","content":null}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning":"$","reasoning_content":"$"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning":"$","content":"$"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"refusal":"$"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":[{"text":"$"}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"$"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"$"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"name":"g","arguments":"$"}}]}}]}"#,
];

const TEXTS: [&str; 10] = [
    "",
    "a",
    "b c",
    "é",
    r#"\""#,
    r"\u00e9\n",
    // Not the text of a string, or the end of one.
    r#"a","content":"b"#,
    r#"a","refusal":"b"#,
    r"\",
    "a\nb",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn what_chunks_have_in_common_is_read_once_and_means_the_same(
        answer in prop::collection::vec((prop::sample::select(&FRAMES[..]), prop::sample::select(&TEXTS[..])), 0..12),
    ) {
        let chunks: Vec<_> = answer.iter().map(|(frame, text)| frame.replace('$', text)).collect();
        let chunks: Vec<_> = chunks.iter().map(String::as_str).chain(["[DONE]"]).collect();
        let afresh = decode_with(&chunks, |decoder| decoder.template.forget());
        prop_assert_eq!(decode(&chunks), afresh);
    }
}
