//! Requests, feature by feature.

use std::sync::Arc;

use mainstem_message::{ContentBlock, DataSource, Message, Opaque, Role, ToolCall, ToolResult, ToolState};
use serde_json::json;

use super::*;

const OLD: &str = "gemini-2.5-flash";
const NEW: &str = "gemini-3-pro-preview";

fn ask(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { messages: messages.into_iter().map(Arc::new).collect(), ..ModelRequest::default() }
}

fn sent(model: &str, request: &ModelRequest) -> Value {
    serde_json::from_slice(&body(model, request).unwrap()).unwrap()
}

/// Checks the contents.
fn check(model: &str, messages: Vec<Message>, expected: Value) {
    assert_eq!(sent(model, &ask(messages))["contents"], expected);
}

fn options(set: impl FnOnce(&mut ModelOptions)) -> Arc<ModelOptions> {
    let mut options = ModelOptions::default();
    set(&mut options);
    Arc::new(options)
}

/// Returns opaque fields with this value under our key.
fn kept(own: Value) -> Opaque {
    json!({ "gemini": own, "anthropic": { "signature": "theirs" } }).as_object().unwrap().clone()
}

fn data(media_type: &str, source: DataSource) -> ContentBlock {
    ContentBlock::Data { media_type: media_type.into(), source, opaque: Opaque::new() }
}

fn base64(media_type: &str) -> ContentBlock {
    data(media_type, DataSource::Base64("QUI=".into()))
}

fn result(id: &str, content: Vec<ContentBlock>, state: ToolState) -> Message {
    let result = ToolResult { tool_call_id: id.into(), name: "f".into(), content, state };
    Message::new(Role::Tool, vec![ContentBlock::ToolResult(result)])
}

fn said(id: &str, text: &str) -> Message {
    result(id, vec![ContentBlock::text(text)], ToolState::Success)
}

fn call(id: &str, name: &str, arguments: &str, own: Value) -> ContentBlock {
    let mut call = ToolCall::new(id, name, arguments);
    call.opaque = kept(own);
    ContentBlock::ToolCall(call)
}

fn answer(blocks: Vec<ContentBlock>) -> Message {
    Message::new(Role::Assistant, blocks)
}

#[test]
fn a_plain_question_is_a_small_request() {
    let request = ModelRequest { system: Some("Be brief.".into()), ..ask(vec![Message::user("Hi")]) };
    let body = body(OLD, &request).unwrap();
    insta::assert_snapshot!(
        String::from_utf8(body).unwrap(),
        @r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}"#
    );
}

#[test]
fn options_have_the_vendors_names() {
    let options = options(|options| {
        options.temperature = Some(0.5);
        options.top_p = Some(0.9);
        options.max_output_tokens = Some(100);
        options.stop = vec!["END".into()];
        options.seed = Some(u64::from(u32::MAX));
        options.effort = Some("low".into());
        options.response_format = Some(ResponseFormat::JsonObject);
        options.parallel_tool_calls = Some(false);
        options.extra = json!({
            "generationConfig": { "topK": 40, "temperature": 0.1, "thinkingConfig": { "includeThoughts": false } },
            "safetySettings": [{ "category": "c", "threshold": "t" }],
            "contents": null,
        })
        .as_object()
        .unwrap()
        .clone();
    });
    let request = ModelRequest { options, ..ask(vec![Message::user("Hi")]) };
    let expected = json!({
        "contents": null,
        "generationConfig": {
            "temperature": 0.1,
            "topP": 0.9,
            "maxOutputTokens": 100,
            "stopSequences": ["END"],
            "seed": 2_147_483_647,
            "responseMimeType": "application/json",
            "thinkingConfig": { "thinkingLevel": "LOW", "includeThoughts": false },
            "topK": 40,
        },
        "safetySettings": [{ "category": "c", "threshold": "t" }],
    });
    assert_eq!(sent(NEW, &request), expected, "extra wins; nothing about tools without tools");
}

#[test]
fn a_model_thinks_by_an_effort_or_a_budget() {
    let thinks = |model: &str, effort: Option<&str>, budget: Option<u32>, expected: Value| {
        let options =
            options(|options| (options.effort, options.thinking_budget) = (effort.map(Into::into), budget));
        let body = sent(model, &ModelRequest { options, ..ask(vec![]) });
        assert_eq!(body["generationConfig"]["thinkingConfig"], expected, "{model} {effort:?}");
    };
    for model in [OLD, NEW] {
        thinks(model, None, Some(2048), json!({ "thinkingBudget": 2048, "includeThoughts": true }));
        thinks(model, None, Some(0), json!({ "thinkingBudget": 0 }));
    }
    thinks(OLD, Some("high"), Some(2048), json!({ "thinkingBudget": 2048, "includeThoughts": true }));
    thinks(NEW, Some("high"), Some(2048), json!({ "thinkingLevel": "HIGH", "includeThoughts": true }));
    let check = |model: &str, effort: &str, expected: Value| thinks(model, Some(effort), None, expected);
    check(NEW, "minimal", json!({ "thinkingLevel": "MINIMAL", "includeThoughts": true }));
    check(NEW, " High", json!({ "thinkingLevel": "HIGH", "includeThoughts": true }));
    check(NEW, "none", json!({ "thinkingLevel": "NONE", "includeThoughts": true }));
    check("gemma-3", "low", json!({ "thinkingLevel": "LOW", "includeThoughts": true }));
    check(OLD, "none", json!({ "thinkingBudget": 0 }));
    check(OLD, "minimal", json!({ "thinkingBudget": 1024, "includeThoughts": true }));
    check(OLD, "low", json!({ "thinkingBudget": 1024, "includeThoughts": true }));
    check(OLD, "medium", json!({ "thinkingBudget": 8192, "includeThoughts": true }));
    check(OLD, "high", json!({ "thinkingBudget": 24576, "includeThoughts": true }));
    check(OLD, "max", json!({ "thinkingBudget": 24576, "includeThoughts": true }));
    check(OLD, "utmost", json!({ "thinkingLevel": "UTMOST", "includeThoughts": true }));
}

#[test]
fn a_schema_can_be_asked_for() {
    let schema = Arc::new(json!({ "type": "object", "properties": { "c": { "const": "red" } }, "not": {} }));
    let format = ResponseFormat::JsonSchema { name: "colour".into(), schema, strict: true };
    let options = options(|options| options.response_format = Some(format));
    assert_eq!(
        sent(NEW, &ModelRequest { options, ..ask(vec![]) }),
        json!({ "contents": [], "generationConfig": {
            "responseMimeType": "application/json",
            "responseJsonSchema": { "type": "object", "properties": { "c": { "enum": ["red"] } } },
        } })
    );
}

#[test]
fn tools_and_the_choice_among_them() {
    let schema = json!({ "$schema": "s", "type": "object", "properties": { "q": { "type": "string" } } });
    let tools: Arc<[ToolSpec]> = [
        ToolSpec::new("search", "Searches.", schema),
        ToolSpec::new("now", "Tells the time.", json!({ "type": "object", "properties": {} })),
    ]
    .into();
    let check = |tool_choice, expected: Value| {
        let body = sent(OLD, &ModelRequest { tools: tools.clone(), tool_choice, ..ask(vec![]) });
        let parameters = json!({ "type": "object", "properties": { "q": { "type": "string" } } });
        assert_eq!(
            body["tools"],
            json!([{ "functionDeclarations": [
                { "name": "search", "description": "Searches.", "parametersJsonSchema": parameters },
                { "name": "now", "description": "Tells the time." },
            ] }])
        );
        assert_eq!(body["toolConfig"], expected);
    };
    let config = |config: Value| json!({ "functionCallingConfig": config });
    check(ToolChoice::Auto, Value::Null);
    check(ToolChoice::None, config(json!({ "mode": "NONE" })));
    check(ToolChoice::Required, config(json!({ "mode": "ANY" })));
    check(
        ToolChoice::Tool("search".into()),
        config(json!({ "mode": "ANY", "allowedFunctionNames": ["search"] })),
    );
    let body = sent(OLD, &ModelRequest { tool_choice: ToolChoice::Required, ..ask(vec![]) });
    assert_eq!(body, json!({ "contents": [] }), "no choice without tools");
}

#[test]
fn what_a_person_says() {
    let user = |blocks| vec![Message::new(Role::User, blocks)];
    let png = json!({ "inlineData": { "mimeType": "image/png", "data": "QUI=" } });
    check(
        OLD,
        user(vec![ContentBlock::text("What?"), ContentBlock::text(""), base64("image/png")]),
        json!([{ "role": "user", "parts": [{ "text": "What?" }, png] }]),
    );
    check(
        OLD,
        user(vec![data("video/mp4", DataSource::Url("https://h/v.mp4".into()))]),
        json!([{ "role": "user", "parts": [{ "fileData": { "mimeType": "video/mp4", "fileUri": "https://h/v.mp4" } }] }]),
    );
    check(OLD, user(vec![]), json!([]));
    check(
        OLD,
        vec![
            Message::user("a"),
            Message::user("b"),
            Message::assistant("c"),
            Message::assistant("d"),
            Message::user("e"),
        ],
        json!([
            { "role": "user", "parts": [{ "text": "a" }, { "text": "b" }] },
            { "role": "model", "parts": [{ "text": "c" }, { "text": "d" }] },
            { "role": "user", "parts": [{ "text": "e" }] },
        ]),
    );
}

#[test]
fn instructions_are_apart_wherever_they_stood() {
    let late = Message::new(Role::System, vec![ContentBlock::text("Late."), ContentBlock::text("")]);
    let request = ModelRequest {
        system: Some("Early.".into()),
        ..ask(vec![Message::user("a"), late, Message::user("b")])
    };
    assert_eq!(
        sent(OLD, &request),
        json!({
            "systemInstruction": { "parts": [{ "text": "Early." }, { "text": "Late." }] },
            "contents": [{ "role": "user", "parts": [{ "text": "a" }, { "text": "b" }] }],
        })
    );
    assert_eq!(
        sent(OLD, &ModelRequest { system: Some("".into()), ..ask(vec![]) }),
        json!({ "contents": [] })
    );
}

#[test]
fn calls_go_back_with_their_results() {
    let messages = || {
        vec![
            answer(vec![
                ContentBlock::text("Look."),
                call("c1", "f", r#"{"b": 2}"#, json!({ "id": "v1", "thoughtSignature": "s" })),
                call("c2", "g", " ", json!({})),
                call("c3", "f", "{}", json!({ "id": "v3" })),
            ]),
            said("c3", "three"),
            result("c2", vec![], ToolState::Denied),
            said("c1", "one"),
            Message::user("And?"),
        ]
    };
    let expected = json!([
        { "role": "model", "parts": [
            { "text": "Look." },
            { "functionCall": { "id": "v1", "name": "f", "args": { "b": 2 } }, "thoughtSignature": "s" },
            { "functionCall": { "name": "g", "args": {} } },
            { "functionCall": { "id": "v3", "name": "f", "args": {} } },
        ] },
        // In the order of the calls, in one content; the next text is another.
        { "role": "user", "parts": [
            { "functionResponse": { "id": "v1", "name": "f", "response": { "output": "one" } } },
            { "functionResponse": { "name": "g", "response": { "error": "denied" } } },
            { "functionResponse": { "id": "v3", "name": "f", "response": { "output": "three" } } },
        ] },
        { "role": "user", "parts": [{ "text": "And?" }] },
    ]);
    check(OLD, messages(), expected.clone());
    check(NEW, messages(), expected);
}

#[test]
fn a_result_belongs_to_the_last_call_of_its_id() {
    let turn = |name, text| vec![answer(vec![call("c", name, "{}", json!({}))]), said("c", text)];
    let called =
        |name| json!({ "role": "model", "parts": [{ "functionCall": { "name": name, "args": {} } }] });
    let done = |name, text| json!({ "role": "user", "parts": [{ "functionResponse": { "name": name, "response": { "output": text } } }] });
    check(
        OLD,
        [turn("f", "one"), turn("g", "two")].concat(),
        json!([called("f"), done("f", "one"), called("g"), done("g", "two")]),
    );
}

#[test]
fn every_state_of_a_result_has_its_key() {
    for (state, key, word) in [
        (ToolState::Success, "output", "success"),
        (ToolState::Running, "output", "running"),
        (ToolState::Error, "error", "error"),
        (ToolState::Interrupted, "error", "interrupted"),
        (ToolState::Denied, "error", "denied"),
    ] {
        for (content, text) in
            [(vec![ContentBlock::text("a"), ContentBlock::text("b")], "ab"), (vec![], word)]
        {
            let contents = sent(
                OLD,
                &ask(vec![answer(vec![call("c", "f", "{}", json!({}))]), result("c", content, state)]),
            );
            assert_eq!(
                contents["contents"][1]["parts"][0]["functionResponse"]["response"],
                json!({ key: text })
            );
        }
    }
}

#[test]
fn data_of_results_is_inside_or_after_them() {
    let messages = || {
        vec![
            answer(vec![
                call("c1", "f", "{}", json!({ "thoughtSignature": "s" })),
                call("c2", "f", "{}", json!({})),
            ]),
            result("c1", vec![ContentBlock::text("a page"), base64("image/png")], ToolState::Success),
            result(
                "c2",
                vec![base64("audio/wav"), data("image/png", DataSource::Url("https://h/p".into()))],
                ToolState::Success,
            ),
        ]
    };
    let inline = |mime| json!({ "inlineData": { "mimeType": mime, "data": "QUI=" } });
    let file = json!({ "fileData": { "mimeType": "image/png", "fileUri": "https://h/p" } });
    let (inside, after) =
        ("(data: see the parts of this response)", "(data: see what follows the responses)");
    let response =
        |text: String| json!({ "functionResponse": { "name": "f", "response": { "output": text } } });
    let mut first = response(format!("a page\n{inside}"));
    first["functionResponse"]["parts"] = json!([inline("image/png")]);
    let second = response(format!("{after}\n{after}"));
    assert_eq!(
        sent(NEW, &ask(messages()))["contents"][1]["parts"],
        json!([first, second, inline("audio/wav"), file])
    );
    assert_eq!(
        sent(OLD, &ask(messages()))["contents"][1]["parts"],
        json!([response(format!("a page\n{after}")), second, inline("image/png"), inline("audio/wav"), file])
    );
}

#[test]
fn signatures_go_back_on_the_part_they_came_on() {
    let text = |text: &str, own| ContentBlock::Text { text: text.into(), opaque: kept(own) };
    let thinking = |text: &str, own| ContentBlock::Thinking { thinking: text.into(), opaque: kept(own) };
    let parts = |blocks, expected: Value| {
        check(NEW, vec![answer(blocks)], json!([{ "role": "model", "parts": expected }]));
    };
    // On the whole text, on its last part, on an empty part after it.
    parts(
        vec![text("Hello", json!({ "thoughtSignature": "s" }))],
        json!([{ "text": "Hello", "thoughtSignature": "s" }]),
    );
    parts(
        vec![text("Hällo", json!({ "thoughtSignature": "s", "from": 3 }))],
        json!([{ "text": "Hä" }, { "text": "llo", "thoughtSignature": "s" }]),
    );
    parts(
        vec![text("Hello", json!({ "thoughtSignature": "s", "from": 5 }))],
        json!([{ "text": "Hello" }, { "text": "", "thoughtSignature": "s" }]),
    );
    // A text that was shortened, or cut within a character: the whole is signed.
    for from in [2, 9] {
        parts(
            vec![text("Hä", json!({ "thoughtSignature": "s", "from": from }))],
            json!([{ "text": "Hä", "thoughtSignature": "s" }]),
        );
    }
    // Thoughts with a signature, and an empty part at the beginning; thoughts without a signature
    // are left out.
    parts(
        vec![
            thinking("a", json!({})),
            thinking("bc", json!({ "thoughtSignature": "s", "thought": true, "from": 1 })),
            thinking("", json!({ "thoughtSignature": "t" })),
            text("d", json!({ "from": 0 })),
        ],
        json!([
            { "text": "b", "thought": true },
            { "text": "c", "thought": true, "thoughtSignature": "s" },
            { "text": "", "thoughtSignature": "t" },
            { "text": "d" },
        ]),
    );
    let image = ContentBlock::Data {
        media_type: "image/png".into(),
        source: DataSource::Base64("QUI=".into()),
        opaque: kept(json!({ "thoughtSignature": "s", "thought": true })),
    };
    parts(
        vec![image],
        json!([{ "inlineData": { "mimeType": "image/png", "data": "QUI=" }, "thought": true, "thoughtSignature": "s" }]),
    );
}

#[test]
fn what_others_thought_is_left_out() {
    let mut opaque = Opaque::new();
    opaque.insert("anthropic".into(), json!({ "signature": "theirs" }));
    let thought = ContentBlock::Thinking { thinking: "hm".into(), opaque };
    check(
        OLD,
        vec![Message::user("Hi"), answer(vec![thought]), Message::assistant("")],
        json!([{ "role": "user", "parts": [{ "text": "Hi" }] }]),
    );
}

#[test]
fn the_first_of_a_turns_calls_is_signed_where_that_is_looked_at() {
    let calls = |first: Value| {
        vec![
            answer(vec![call("a", "f", "{}", first), call("b", "f", "{}", json!({}))]),
            said("a", "x"),
            said("b", "y"),
        ]
    };
    let signatures = |model: &str, first: Value| {
        let sent = sent(model, &ask([calls(first.clone()), calls(first)].concat()));
        [0, 2].map(|content| {
            [0, 1].map(|part| sent["contents"][content]["parts"][part]["thoughtSignature"].clone())
        })
    };
    let stand_in = json!("skip_thought_signature_validator");
    let own = json!({ "thoughtSignature": "s" });
    assert_eq!(signatures(NEW, json!({})), [[stand_in.clone(), Value::Null], [stand_in, Value::Null]]);
    assert_eq!(signatures(NEW, own.clone()), [[json!("s"), Value::Null], [json!("s"), Value::Null]]);
    assert_eq!(signatures(OLD, json!({})), [[Value::Null, Value::Null], [Value::Null, Value::Null]]);
    assert_eq!(signatures(OLD, own), [[json!("s"), Value::Null], [json!("s"), Value::Null]]);
}

#[test]
fn what_has_no_form_is_refused_with_its_place() {
    let check = |message: Message, expected: &str| {
        let request = ask(vec![Message::user("Hi"), message]);
        let error = body(OLD, &request).unwrap_err();
        assert_eq!(error, format!("has no form for {expected}"));
    };
    check(said("nowhere", "x"), "a result without its call before it (message 2, block 1)");
    check(
        Message::new(Role::User, vec![ContentBlock::text("a"), call("c", "f", "{}", json!({}))]),
        "a call that the model did not make (message 2, block 2)",
    );
    check(
        Message::new(Role::System, vec![base64("image/png")]),
        "instructions that are not text (message 2, block 1)",
    );
}
