//! Decoding: documented chunks, some like recorded ones, and invalid data.

use mainstem_http::{Auth, Url};
use mainstem_testing::provider::payloads;

use super::*;

fn decoder() -> Decoder {
    let url = Url::parse("https://h/v1beta/models/m:streamGenerateContent?alt=sse").unwrap();
    let mut server = Server::new(url, Auth::Header("x-goog-api-key"));
    server.set_key("AIza-secret".into());
    Decoder::new(Arc::new(server))
}

/// Returns the deltas of some payloads in short: `text`, `~thinking~`, `[image/png]bytes`, `/` and
/// the opaque fields at the end of a block, `0+id:name`, `0:arguments`, `0.` and the opaque fields
/// of an ended call, `7+2` for usage, `|stop`, `!kind: message`.
fn decode<S: AsRef<str>>(payloads: &[S]) -> String {
    let mut decoder = decoder();
    let mut deltas = Deltas::new();
    let mut decoded = payloads.iter().try_for_each(|payload| decoder.decode(payload.as_ref(), &mut deltas));
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
    let kept = |opaque: &Opaque| match opaque.get("gemini") {
        Some(kept) => kept.to_string(),
        None => String::new(),
    };
    match delta {
        ModelDelta::Text(text) => text.replace('\n', "⏎"),
        ModelDelta::Thinking(text) => format!("~{}~", text.replace('\n', "⏎")),
        ModelDelta::DataStart { media_type } => format!("[{media_type}]"),
        ModelDelta::Data(data) => data.clone(),
        ModelDelta::BlockEnd { opaque } => format!("/{}", kept(opaque)),
        ModelDelta::CallStart { slot, id, name } => {
            format!("{slot}+{}:{name}", id.as_ref().map_or("", |id| id.as_str()))
        }
        ModelDelta::CallArguments { slot, delta } => format!("{slot}:{delta}"),
        ModelDelta::CallEnd { slot, opaque } => format!("{slot}.{}", kept(opaque)),
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
        other => panic!("{other:?} is not for a decoder to say"),
    }
}

/// Returns a chunk with these parts.
fn parts(parts: &str) -> String {
    format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}],"role":"model"}},"index":0}}]}}"#)
}

/// Returns a chunk with a reason to finish.
fn finish(reason: &str) -> String {
    format!(r#"{{"candidates":[{{"finishReason":"{reason}","index":0}}]}}"#)
}

/// Checks the deltas of chunks with these parts, whose stream ends with `STOP`.
fn check(chunks: &[&str], expected: &str) {
    let mut payloads: Vec<_> = chunks.iter().map(|chunk| parts(chunk)).collect();
    payloads.push(finish("STOP"));
    assert_eq!(decode(&payloads), expected, "{chunks:?}");
}

#[test]
fn content() {
    check(&[r#"{"text":"Hé\n"}"#, r#"{"text":""}"#, r#"{"text":"llo"}"#], "Hé⏎ llo |stop");
    check(&[r#"{"text":"a\u00e9\ud83d\ude00"}"#], "aé😀 |stop");
    check(&[r#"{"text":"a"},{"text":"b"}"#], "a b |stop");
    check(&[r#"{"text":"hm","thought":true},{"text":"a","thought":false}"#], "~hm~ / a |stop");
    check(&[r#"{"text":null,"thought":null,"thoughtSignature":null}"#, "", "{}"], "|stop");
    check(
        &[r#"{"text":"a"}"#, r#"{"inlineData":{"mimeType":"image/png","data":"QUI="}}"#, r#"{"text":"b"}"#],
        "a [image/png] QUI= / b |stop",
    );
    check(&[r#"{"inlineData":{}}"#], "[]  / |stop");
}

#[test]
fn what_the_service_does_by_itself_is_reported_and_kept() {
    check(
        &[
            r#"{"executableCode":{"language":"PYTHON","code":"1"},"thoughtSignature":"s"}"#,
            r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}"#,
            r#"{"toolCall":{"toolType":"GOOGLE_SEARCH","id":"t"},"thoughtSignature":"s"},{"toolResponse":{"id":"t"}}"#,
            r#"{"newKind":{}},{"text":"a","newField":[{}]}"#,
        ],
        concat!(
            r#"$code_execution{"language":"PYTHON","code":"1"} "#,
            r#"/{"part":{"executableCode":{"language":"PYTHON","code":"1"},"thoughtSignature":"s"}} "#,
            r#"/{"part":{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}} "#,
            r#"$google_search{"toolType":"GOOGLE_SEARCH","id":"t"} "#,
            r#"/{"part":{"toolCall":{"toolType":"GOOGLE_SEARCH","id":"t"},"thoughtSignature":"s"}} "#,
            r#"/{"part":{"toolResponse":{"id":"t"}}} a |stop"#,
        ),
    );
}

#[test]
fn a_search_without_parts_is_reported_by_its_queries() {
    let grounded = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"groundingMetadata":{"webSearchQueries":["x"]},"index":0}]}"#;
    let told = [grounded.to_owned(), grounded.to_owned(), finish("STOP")];
    assert_eq!(decode(&told), r#"a $google_search{"queries":["x"]} a |stop"#);
}

#[test]
fn signatures() {
    let check = |chunks: &[&str], expected: &str| check(chunks, &format!("{expected} |stop"));
    // On the only part, on the last of several, on an empty one after them.
    check(&[r#"{"text":"a","thoughtSignature":"s"}"#], r#"a /{"thoughtSignature":"s"}"#);
    check(
        &[r#"{"text":"é"}"#, r#"{"text":"b","thoughtSignature":"s"}"#],
        r#"é b /{"thoughtSignature":"s","from":2}"#,
    );
    check(
        &[r#"{"text":"é"}"#, r#"{"text":"b"}"#, r#"{"text":"","thoughtSignature":"s"}"#],
        r#"é b /{"thoughtSignature":"s","from":3}"#,
    );
    check(&[r#"{"text":"a"}"#, r#"{"thoughtSignature":"s"}"#], r#"a /{"thoughtSignature":"s","from":1}"#);
    // Signed parts are not merged.
    check(
        &[r#"{"text":"a","thoughtSignature":"s"}"#, r#"{"text":"b"},{"text":"c","thoughtSignature":"t"}"#],
        r#"a /{"thoughtSignature":"s"} b c /{"thoughtSignature":"t","from":1}"#,
    );
    // An empty part without an open block, or after a block of the other kind.
    check(&[r#"{"text":"","thoughtSignature":"s"}"#], r#"/{"thoughtSignature":"s"}"#);
    check(
        &[r#"{"text":"hm","thought":true}"#, r#"{"text":"","thoughtSignature":"s"}"#],
        r#"~hm~ / /{"thoughtSignature":"s"}"#,
    );
    check(
        &[r#"{"text":"hm","thought":true}"#, r#"{"text":"!","thought":true,"thoughtSignature":"s"}"#],
        r#"~hm~ ~!~ /{"thoughtSignature":"s","thought":true,"from":2}"#,
    );
    check(&[r#"{"text":"a","thoughtSignature":""}"#], "a");
    check(
        &[r#"{"inlineData":{"mimeType":"image/png","data":"QUI="},"thought":true,"thoughtSignature":"s"}"#],
        r#"[image/png] QUI= /{"thoughtSignature":"s","thought":true}"#,
    );
}

#[test]
fn calls() {
    let check = |chunks: &[&str], expected: &str| check(chunks, &format!("{expected} |tool_calls"));
    check(
        &[
            r#"{"functionCall":{"name":"f","args":{"a": [1, "é"]}},"thoughtSignature":"s"},{"functionCall":{"name":"f","args":{}}}"#,
            r#"{"functionCall":{"id":"x","name":"g"}}"#,
        ],
        r#"0+:f 0:{"a": [1, "é"]} 0.{"thoughtSignature":"s"} 1+:f 1:{} 1. 2+x:g 2.{"id":"x"}"#,
    );
    check(&[r#"{"functionCall":{"id":"","name":"f","args":null}}"#], "0+:f 0.");
    check(&[r#"{"functionCall":{}}"#], "0+: 0.");
    // The terminal chunk may hold a signature alone.
    check(
        &[r#"{"text":"a"},{"functionCall":{"name":"f"}}"#, r#"{"text":"","thoughtSignature":"s"}"#],
        r#"a 0+:f 0. /{"thoughtSignature":"s"}"#,
    );
}

#[test]
fn every_finish_reason() {
    let said = |reason: &str| decode(&[parts(r#"{"text":"a"}"#), finish(reason)]);
    for (reason, expected) in [
        ("STOP", "|stop"),
        ("MAX_TOKENS", "|length"),
        ("LANGUAGE", "|LANGUAGE"),
        ("OTHER", "|OTHER"),
        ("FINISH_REASON_UNSPECIFIED", "|FINISH_REASON_UNSPECIFIED"),
        ("TOO_MANY_TOOL_CALLS", "|TOO_MANY_TOOL_CALLS"),
        ("NEW_REASON", "|NEW_REASON"),
    ] {
        assert_eq!(said(reason), format!("a {expected}"));
    }
    for filter in [
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "MODEL_ARMOR",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    ] {
        assert_eq!(said(filter), format!("a / ~h's filter stopped the answer: {filter}~ |content_filter"));
    }
    let call = parts(r#"{"functionCall":{"name":"f"}}"#);
    assert_eq!(decode(&[&call, &finish("MAX_TOKENS")]), "0+:f 0. |length");
    // Older models report a finish in each chunk; the last one counts.
    assert_eq!(decode(&[&finish("STOP"), &parts(r#"{"text":"a"}"#), &finish("MAX_TOKENS")]), "a |length");
    assert_eq!(decode(&[&finish("STOP"), &finish("")]), "|stop");
}

#[test]
fn a_call_that_the_model_failed_to_write() {
    let message =
        r#"{"candidates":[{"finishReason":"$","finishMessage":"Malformed function call: f(AIza-secret"}]}"#;
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"] {
        let message = message.replace('$', reason);
        let failed = format!(
            "!server_error: h gave up its answer: {reason}: Malformed function call: f([secret] (asking again may help)"
        );
        assert_eq!(decode(&[&message]), failed, "nothing was said");
        assert_eq!(decode(&[&parts(r#"{"text":"Let me see"}"#), &message]), format!("Let me see {failed}"));
        let thought = parts(r#"{"text":"hm","thought":true}"#);
        assert_eq!(decode(&[&thought, &message]), format!("~hm~ |{reason}"), "the loop asks again");
        let begun = parts(r#"{"text":"Let me see"}"#);
        assert_eq!(decode(&[&thought, &begun, &message]), format!("~hm~ / Let me see {failed}"));
        let signed = parts(r#"{"text":"","thoughtSignature":"s"}"#);
        assert_eq!(decode(&[&signed, &message]), format!(r#"/{{"thoughtSignature":"s"}} |{reason}"#));
        let call = parts(r#"{"functionCall":{"name":"f"}}"#);
        assert_eq!(decode(&[&thought, &call, &message]), "~hm~ 0+:f 0. |tool_calls");
    }
    let error =
        decoder().failed_call(&Finish { reason: "X".into(), message: None, blocked: false }).unwrap_err();
    assert!(error.is_retryable() && error.to_string() == "h gave up its answer: X (asking again may help)");
}

#[test]
fn a_blocked_prompt_says_why() {
    let feedback = |feedback: &str| format!(r#"{{"promptFeedback":{feedback}}}"#);
    assert_eq!(
        decode(&[feedback(
            r#"{"blockReason":"SAFETY","safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT"}]}"#
        )]),
        "~h's filter stopped the prompt: SAFETY~ |content_filter"
    );
    assert_eq!(
        decode(&[feedback(r#"{"blockReason":"NEW","blockReasonMessage":"Because\nof this."}"#)]),
        "~h's filter stopped the prompt: NEW: Because of this.~ |content_filter"
    );
    let rated = feedback(r#"{"safetyRatings":[]}"#);
    assert_eq!(decode(&[&rated, &finish("STOP")]), "|stop");
}

#[test]
fn usage_is_ours_to_add_up() {
    let usage = |usage: &str| format!(r#"{{"candidates":[],"usageMetadata":{usage}}}"#);
    let done = finish("STOP");
    // Thoughts are apart from the candidates there, and output here; the prompt includes cached
    // tokens in both.
    let whole = usage(
        r#"{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":5,"thoughtsTokenCount":7,"toolUsePromptTokenCount":3,"totalTokenCount":25}"#,
    );
    assert_eq!(decode(&[&whole, &done]), "13+12(4,0,7) |stop");
    // The last of the counts; a later chunk may leave some of them out, or all.
    let first = usage(r#"{"promptTokenCount":10,"thoughtsTokenCount":2}"#);
    let last = usage(r#"{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":null}"#);
    assert_eq!(decode(&[&first, &last, &done]), "10+5(0,0,2) |stop");
    let traffic = usage(r#"{"trafficType":"ON_DEMAND"}"#);
    assert_eq!(decode(&[&traffic, &done]), "|stop");
    assert_eq!(decode(&[&last, &done, &traffic]), "10+3(0,0,0) |stop");
    let huge = usage(&format!(r#"{{"promptTokenCount":{0},"toolUsePromptTokenCount":{0}}}"#, u64::MAX));
    assert!(decode(&[&huge, &done]).starts_with(&u64::MAX.to_string()));
}

#[test]
fn chunks_without_a_say() {
    let second = r#"{"candidates":[{"index":1,"content":{"parts":[{"text":"another answer"}]},"finishReason":"SAFETY"},{"content":{"parts":[{"text":"b"}]}}]}"#;
    let empty =
        r#"{"candidates":[{"content":{},"groundingMetadata":{}},{"content":null}],"modelVersion":"m"}"#;
    assert_eq!(decode(&["{}", empty, r#"{"responseId":"r"}"#, second, "", &finish("STOP")]), "b |stop");
    assert_eq!(decode(&["{}"]), "!transport: h ended the connection before its answer was complete");
    assert_eq!(decode(&[&finish("STOP"), "[DONE]"]), "|stop");
    let mut decoder = decoder();
    decoder.decode("[DONE]\n", &mut Deltas::new()).unwrap();
    assert!(decoder.is_done(), "a gateway's word");
}

#[test]
fn an_answer_that_broke_off_is_none() {
    let cut = "!transport: h ended the connection before its answer was complete";
    assert_eq!(decode(&[parts(r#"{"text":"a"}"#)]), format!("a {cut}"));
    assert_eq!(decode(&[parts(r#"{"functionCall":{"name":"f"}}"#)]), format!("0+:f 0. {cut}"));
    assert_eq!(decode::<&str>(&[]), cut);
    assert_eq!(decode(&["[DONE]"]), cut);
}

#[test]
fn errors_in_mid_stream() {
    let text = parts(r#"{"text":"a"}"#);
    let check = |payload: &str, expected: &str| {
        assert_eq!(decode(&[&text, payload, &text]), format!("a !{expected}"));
    };
    check(
        r#"{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#,
        "overloaded: h broke off its answer: The model is overloaded. Please try again later.",
    );
    check(
        r#"[{"error":{"code":500,"message":"An internal error has occurred with AIza-secret","status":"INTERNAL"}}]"#,
        "server_error: h broke off its answer: An internal error has occurred with [secret]",
    );
    check(
        r#"{"error":{"status":"RESOURCE_EXHAUSTED","message":"m"}}"#,
        "rate_limited: h broke off its answer: m",
    );
    check(r#"{"message":"gateway is down"}"#, "server_error: h broke off its answer: gateway is down");
    check(r#"{"error":"m","candidates":7}"#, "server_error: h broke off its answer: m");
}

#[test]
fn nonsense_is_quoted_with_its_place() {
    let says = "!protocol: h sent what is no Gemini response:";
    for (payload, expected) in [
        ("{\"candidates\":[", "EOF while parsing a list at line 1 column 15: {\"candidates\":["),
        ("hello", "expected value at line 1 column 1: hello"),
        ("{} AIza-secret", "trailing characters at line 1 column 4: {} [secret]"),
        ("[1", "EOF while parsing a list at line 1 column 2: [1"),
        (
            r#"{"candidates":[{"content":{"parts":[{"text":1}]}}]}"#,
            r#"invalid type: integer `1`, expected a string at line 1 column 45: {"candidates":[{"content":{"parts":[{"text":1}]}}]}"#,
        ),
    ] {
        assert_eq!(decode(&[payload]), format!("{says} {expected}"));
    }
    let long = decode(&["x".repeat(10_000)]);
    assert!(long.len() < 400 && long.ends_with("xxx…"), "{long}");
}

fn whole(body: &str) -> String {
    let mut deltas = Deltas::new();
    let decoded = decoder().decode_whole(body, &mut deltas);
    shown(&deltas, decoded)
}

#[test]
fn an_answer_of_one_piece() {
    let one = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}"#;
    assert_eq!(whole(one), "a 1+0(0,0,0) |stop");
    // Without `alt=sse`, the chunks come in an array.
    assert_eq!(whole(include_str!("../../tests/fixtures/array.body")), "One,  two. 5+4(0,0,0) |stop");
    assert_eq!(whole("{}"), "!protocol: h sent what is no Gemini response: it has no candidates: {}");
    assert_eq!(whole(" []"), "!protocol: h sent what is no Gemini response: it has no candidates: []");
    assert_eq!(
        whole(
            r#"[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},{"error":{"code":429,"message":"later"}}]"#
        ),
        "a !rate_limited: h broke off its answer: later"
    );
    assert_eq!(
        whole(r#"[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}]"#),
        "a !transport: h ended the connection before its answer was complete"
    );
}

/// Returns the deltas of such bytes.
fn replay(bytes: &[u8]) -> String {
    decode(&payloads::<GenerateContent>([bytes]))
}

/// Written after the
/// [reference](https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse) in the
/// bytes that the service uses: `\r\n\r\n` between events, a space behind each colon.
/// `vertex_calls` has Vertex AI's order and fields, with the ids of Gemini 3; `text` ends with the
/// empty signed part of [streamed
/// text](https://ai.google.dev/gemini-api/docs/thought-signatures#non-functioncall).
macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../tests/fixtures/", $name, ".body"))
    };
}

const STREAMS: [&[u8]; 6] = [
    fixture!("text"),
    fixture!("thoughts"),
    fixture!("call"),
    fixture!("vertex_calls"),
    fixture!("blocked"),
    fixture!("malformed_call"),
];

#[test]
fn documented_streams() {
    let [text, thoughts, call, vertex, blocked, malformed] = STREAMS.map(replay);
    insta::assert_snapshot!(text, @r#"Der Rhein fließt durch  Köln 🌊. /{"thoughtSignature":"EqMDCqADARFNMg9Zc2lnbmF0dXJlIG9mIGEgdGV4dA==","from":35} 9+90(4,0,81) |stop"#);
    insta::assert_snapshot!(thoughts, @r#"~**Considering Primes**⏎⏎I am dividing 391 by 17.⏎⏎~ ~**Confirming**⏎⏎It is 23.⏎⏎~ / No: 391 = 17 × 23. 13+91(0,0,77) |stop"#);
    insta::assert_snapshot!(call, @r#"~**Locating**⏎⏎The tool knows the weather.⏎⏎~ / Let me look.  0+:get_weather 0:{"city": "Köln","days": [1,2]} 0.{"thoughtSignature":"CiQB0e2Kb6TkudQsc2lnbmF0dXJlIG9mIGEgY2FsbA=="} 52+77(0,0,56) |tool_calls"#);
    insta::assert_snapshot!(vertex, @r#"0+call_463646:get_weather 0:{"city": "Paris"} 0.{"id":"call_463646","thoughtSignature":"AY89a19eCdKurFEZc2lnbmF0dXJlIG9mIHR3byBjYWxscw=="} 1+call_463649:get_weather 1:{"city": "Tokyo"} 1.{"id":"call_463649"} 38+32(0,0,0) |tool_calls"#);
    insta::assert_snapshot!(blocked, @r#"~h's filter stopped the prompt: PROHIBITED_CONTENT~ 12+0(0,0,0) |content_filter"#);
    insta::assert_snapshot!(malformed, @r#"!server_error: h gave up its answer: MALFORMED_FUNCTION_CALL: Malformed function call: print(default_api.get_weather(city='Paris')) (asking again may help)"#);
}
