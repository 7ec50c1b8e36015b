//! Requests, feature by feature.

use std::sync::Arc;

use mainstem_http::Decode;
use mainstem_message::{
    ContentBlock, DataSource, Message, Opaque, Role, ToolCall, ToolResult, ToolSpec, ToolState,
};
use mainstem_model::{ModelDelta, ModelOptions};

use super::*;

fn ask(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { messages: messages.into_iter().map(Arc::new).collect(), ..ModelRequest::default() }
}

fn sent(request: &ModelRequest, dialect: &Dialect) -> Value {
    serde_json::from_slice(&body("gpt-5.1", request, dialect).unwrap()).unwrap()
}

/// Checks the input.
fn check(messages: Vec<Message>, expected: Value) {
    assert_eq!(sent(&ask(messages), &Dialect::default())["input"], expected);
}

fn options(set: impl FnOnce(&mut ModelOptions)) -> Arc<ModelOptions> {
    let mut options = ModelOptions::default();
    set(&mut options);
    Arc::new(options)
}

fn data(media_type: &str, source: DataSource) -> ContentBlock {
    ContentBlock::Data { media_type: media_type.into(), source, opaque: Opaque::new() }
}

fn base64(media_type: &str) -> ContentBlock {
    data(media_type, DataSource::Base64("QUI=".into()))
}

fn url(media_type: &str) -> ContentBlock {
    data(media_type, DataSource::Url("https://h/a".into()))
}

fn opaque(value: Value) -> Opaque {
    value.as_object().cloned().unwrap()
}

fn thought(kept: Value) -> ContentBlock {
    ContentBlock::Thinking { thinking: "hm".into(), opaque: opaque(kept) }
}

/// Returns a reasoning item.
fn item(id: &str) -> Value {
    let summary = json!([{ "type": "summary_text", "text": "hm" }]);
    json!({ "type": "reasoning", "id": id, "encrypted_content": "gAAA", "summary": summary })
}

fn reasoning(id: &str) -> ContentBlock {
    thought(json!({ "openai": item(id) }))
}

fn phased(text: &str, phase: &str) -> ContentBlock {
    ContentBlock::Text { text: text.into(), opaque: opaque(json!({ "openai": { "phase": phase } })) }
}

fn call(id: &str) -> ContentBlock {
    ContentBlock::ToolCall(ToolCall::new(id, "f", "{}"))
}

fn assistant(content: Vec<ContentBlock>) -> Message {
    Message::new(Role::Assistant, content)
}

fn result(id: &str, content: Vec<ContentBlock>, state: ToolState) -> Message {
    let result = ToolResult { tool_call_id: id.into(), name: "f".into(), content, state };
    Message::new(Role::Tool, vec![ContentBlock::ToolResult(result)])
}

/// Returns a message of the user.
fn asked(content: Value) -> Value {
    json!({ "type": "message", "role": "user", "content": content })
}

/// Returns a message of the model.
fn said(texts: &[&str]) -> Value {
    let content: Vec<_> = texts.iter().map(|text| json!({ "type": "output_text", "text": text })).collect();
    json!({ "type": "message", "role": "assistant", "content": content })
}

fn called(id: &str) -> Value {
    json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": "{}" })
}

fn answered(id: &str, output: Value) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": output })
}

#[test]
fn a_plain_question_is_a_small_request() {
    let request = ModelRequest { system: Some("Be brief.".into()), ..ask(vec![Message::user("Hi")]) };
    let body = body("gpt-5.1", &request, &Dialect::default()).unwrap();
    insta::assert_snapshot!(
        String::from_utf8(body).unwrap(),
        @r#"{"model":"gpt-5.1","store":false,"include":["reasoning.encrypted_content"],"stream":true,"instructions":"Be brief.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}]}"#
    );
}

#[test]
fn openais_own_fields_are_sent_to_it_alone() {
    let request = ModelRequest { cache_key: Some("c".into()), ..ask(vec![]) };
    let fields = |dialect: Dialect| {
        let body = sent(&request, &dialect);
        [body.get("stream_options").cloned(), body.get("prompt_cache_key").cloned()]
    };
    let own = || Dialect { own_fields: true, ..Dialect::default() };
    let plain = json!({ "include_obfuscation": false });
    assert_eq!(fields(own()), [Some(plain), Some("c".into())]);
    assert_eq!(fields(Dialect { whole: Some("no".into()), ..own() }), [None, Some("c".into())]);
    assert_eq!(fields(Dialect::default()), [None, None]);
}

#[test]
fn options_have_the_vendors_names() {
    let options = options(|options| {
        options.temperature = Some(0.5);
        options.top_p = Some(0.9);
        options.max_output_tokens = Some(100);
        options.stop = vec!["END".into()];
        options.seed = Some(7);
        options.effort = Some("low".into());
        options.response_format = Some(ResponseFormat::JsonObject);
        options.parallel_tool_calls = Some(false);
        options.extra.insert("service_tier".into(), "flex".into());
        options.extra.insert("temperature".into(), 0.1.into());
        options.extra.insert("include".into(), json!([]));
    });
    let request = ModelRequest { options, ..ask(vec![Message::user("Hi")]) };
    let expected = json!({
        "model": "gpt-5.1",
        "input": [asked(json!([{ "type": "input_text", "text": "Hi" }]))],
        "top_p": 0.9,
        "max_output_tokens": 100,
        "reasoning": { "effort": "low", "summary": "auto" },
        "text": { "format": { "type": "json_object" } },
        "store": false,
        "stream": true,
        "service_tier": "flex",
        "temperature": 0.1,
        "include": [],
    });
    assert_eq!(
        sent(&request, &Dialect::default()),
        expected,
        "extra wins; no stop, no seed; nothing about tools without tools"
    );
}

#[test]
fn a_schema_can_be_asked_for() {
    let check = |schema: Value, asked: bool, strict: bool| {
        let shared = Arc::new(schema.clone());
        let format = ResponseFormat::JsonSchema { name: "colour".into(), schema: shared, strict: asked };
        let options = options(|options| options.response_format = Some(format));
        let format = json!({ "type": "json_schema", "name": "colour", "schema": schema, "strict": strict });
        assert_eq!(
            sent(&ModelRequest { options, ..ask(vec![]) }, &Dialect::default())["text"],
            json!({ "format": format })
        );
    };
    let object = |required: Value| {
        let properties = json!({ "a": { "type": "string" } });
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    };
    check(object(json!(["a"])), true, true);
    check(object(json!(["a"])), false, false);
    check(object(json!([])), true, false);
}

#[test]
fn tools_and_the_choice_among_them() {
    let strict = json!({ "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"], "additionalProperties": false });
    let tools: Arc<[ToolSpec]> = [
        ToolSpec::new("search", "Searches.", json!({ "type": "object" })),
        ToolSpec::new("find", "Finds.", strict.clone()),
    ]
    .into();
    let options = options(|options| options.parallel_tool_calls = Some(true));
    let check = |tool_choice, expected: Value| {
        let (tools, options) = (tools.clone(), options.clone());
        let body = sent(&ModelRequest { tools, tool_choice, options, ..ask(vec![]) }, &Dialect::default());
        let expected_tools = json!([
            { "type": "function", "name": "search", "description": "Searches.", "parameters": { "type": "object" }, "strict": false },
            { "type": "function", "name": "find", "description": "Finds.", "parameters": strict, "strict": true },
        ]);
        assert_eq!(body["tools"], expected_tools);
        assert_eq!(body["parallel_tool_calls"], true);
        assert_eq!(body["tool_choice"], expected);
    };
    check(ToolChoice::Auto, Value::Null);
    check(ToolChoice::None, json!("none"));
    check(ToolChoice::Required, json!("required"));
    check(ToolChoice::Tool("search".into()), json!({ "type": "function", "name": "search" }));
}

#[test]
fn text_images_and_files_are_parts() {
    let blocks = |blocks| vec![Message::new(Role::User, blocks)];
    check(
        blocks(vec![ContentBlock::text("a"), ContentBlock::text(""), ContentBlock::text("b")]),
        json!([asked(json!([{ "type": "input_text", "text": "a" }, { "type": "input_text", "text": "b" }]))]),
    );
    check(
        blocks(vec![base64("image/png"), url("image/jpeg")]),
        json!([asked(json!([
            { "type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,QUI=" },
            { "type": "input_image", "detail": "auto", "image_url": "https://h/a" },
        ]))]),
    );
    check(
        blocks(vec![base64("application/pdf"), base64("text/csv"), url("application/pdf")]),
        json!([asked(json!([
            { "type": "input_file", "filename": "file.pdf", "file_data": "data:application/pdf;base64,QUI=" },
            { "type": "input_file", "filename": "file.csv", "file_data": "data:text/csv;base64,QUI=" },
            { "type": "input_file", "file_url": "https://h/a" },
        ]))]),
    );
    check(
        vec![Message::new(Role::System, vec![ContentBlock::text("s")])],
        json!([{ "type": "message", "role": "system", "content": [{ "type": "input_text", "text": "s" }] }]),
    );
    check(blocks(vec![]), json!([]));
    check(blocks(vec![ContentBlock::text("")]), json!([]));
}

#[test]
fn data_without_a_form_is_refused_with_its_place() {
    for (block, name) in [
        (base64("video/mp4"), "video/mp4"),
        (url("audio/wav"), "audio/wav"),
        (base64("audio/wav"), "audio/wav"),
        (base64("application/zip"), "application/zip"),
    ] {
        let message = Message::new(Role::User, vec![ContentBlock::text("See:"), block]);
        let request = ask(vec![Message::user("Hi"), message]);
        let error = body("m", &request, &Dialect::default()).unwrap_err();
        assert_eq!(
            error,
            format!(
                "supports text, images and documents, not {name} (block 2 of message 2); send it as text"
            )
        );
    }
}

#[test]
fn reasoning_goes_back_before_what_followed_it() {
    check(
        vec![
            Message::user("Hi"),
            assistant(vec![reasoning("rs1"), reasoning("rs2"), ContentBlock::text("I look."), call("c1")]),
            result("c1", vec![ContentBlock::text("one")], ToolState::Success),
            assistant(vec![reasoning("rs3"), call("c2"), call("c3")]),
            result("c2", vec![], ToolState::Denied),
            result("c3", vec![ContentBlock::text("no such file")], ToolState::Error),
            assistant(vec![ContentBlock::text("Done"), ContentBlock::text(".")]),
        ],
        json!([
            asked(json!([{ "type": "input_text", "text": "Hi" }])),
            item("rs1"),
            item("rs2"),
            said(&["I look."]),
            called("c1"),
            answered("c1", json!("one")),
            item("rs3"),
            called("c2"),
            called("c3"),
            answered("c2", json!("denied")),
            answered("c3", json!("no such file")),
            said(&["Done", "."]),
        ]),
    );
}

#[test]
fn reasoning_that_cannot_go_back_is_left_out() {
    let question = || asked(json!([{ "type": "input_text", "text": "Hi" }]));
    let check = |thoughts: Vec<ContentBlock>| {
        let content = thoughts.into_iter().chain([ContentBlock::text("a")]).collect();
        check(vec![Message::user("Hi"), assistant(content)], json!([question(), said(&["a"])]));
    };
    check(vec![ContentBlock::thinking("hm")]);
    check(vec![thought(json!({ "anthropic": { "signature": "s" } }))]);
    check(vec![thought(json!({ "openai": { "type": "reasoning", "id": "rs" } }))]);
    check(vec![thought(json!({ "openai": { "phase": "p", "encrypted_content": "e" } }))]);
    check(vec![thought(json!({ "openai": "rs" }))]);
    check(vec![ContentBlock::Thinking { thinking: String::new(), opaque: Opaque::new() }]);
}

#[test]
fn reasoning_is_never_sent_alone() {
    // The turn was cut off: the user's next text does not follow from it.
    let question = || asked(json!([{ "type": "input_text", "text": "Hi" }]));
    check(
        vec![Message::user("Hi"), assistant(vec![reasoning("rs")]), Message::user("Hi")],
        json!([question(), question()]),
    );
    check(
        vec![assistant(vec![ContentBlock::text("a"), reasoning("rs"), ContentBlock::text("")])],
        json!([said(&["a"])]),
    );
    check(vec![assistant(vec![])], json!([]));
}

#[test]
fn messages_keep_their_phase() {
    let mut commentary = said(&["hm", "hm"]);
    commentary["phase"] = "commentary".into();
    let mut answer = said(&["a"]);
    answer["phase"] = "final_answer".into();
    let content = vec![phased("hm", "commentary"), phased("hm", "commentary"), phased("a", "final_answer")];
    check(vec![assistant(content)], json!([commentary, answer]));
    // Reasoning between two messages stays between them.
    let content = vec![ContentBlock::text("a"), reasoning("rs"), ContentBlock::text("b")];
    check(vec![assistant(content)], json!([said(&["a"]), item("rs"), said(&["b"])]));
}

#[test]
fn data_of_results_stays_with_them() {
    let shot = vec![ContentBlock::text("a page"), base64("image/png"), base64("video/mp4")];
    check(
        vec![assistant(vec![call("c")]), result("c", shot, ToolState::Success)],
        json!([
            called("c"),
            answered(
                "c",
                json!([
                    { "type": "input_text", "text": "a page" },
                    { "type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,QUI=" },
                    { "type": "input_text", "text": "(data omitted: unsupported type)" },
                ])
            ),
        ]),
    );
}

#[test]
fn a_dialect_changes_the_request() {
    let options = options(|options| options.effort = Some("low".into()));
    let turn = assistant(vec![reasoning("rs"), call("c")]);
    let request = ModelRequest { options, ..ask(vec![turn]) };
    let dialect = Dialect {
        plain: true,
        no_summary: true,
        omits_reasoning: true,
        whole: Some("no".into()),
        ..Dialect::default()
    };
    let expected = json!({
        "model": "gpt-5.1",
        "input": [called("c")],
        "reasoning": { "effort": "low" },
        "store": false,
        "stream": false,
    });
    assert_eq!(sent(&request, &dialect), expected);
    assert_eq!(sent(&request, &Dialect::default())["input"], json!([item("rs"), called("c")]));
}

#[test]
fn what_the_model_sent_is_what_goes_back() {
    let body = include_str!("../../../tests/fixtures/responses_whole.body");
    let mut deltas = mainstem_http::Deltas::new();
    let mut decoder =
        super::super::decoder::Decoder::new(Arc::new(crate::OpenAiResponses::new("m").server().clone()));
    decoder.decode_whole(body, &mut deltas).unwrap();
    // As the loop folds them.
    let mut content = Vec::new();
    for delta in deltas {
        match delta {
            ModelDelta::Thinking(text) => content.push(ContentBlock::thinking(text)),
            ModelDelta::Text(delta) => match content.last_mut() {
                Some(ContentBlock::Text { text, .. }) => text.push_str(&delta),
                _ => content.push(ContentBlock::text(delta)),
            },
            ModelDelta::BlockEnd { opaque: kept } => match content.last_mut() {
                Some(ContentBlock::Text { opaque, .. } | ContentBlock::Thinking { opaque, .. }) => {
                    *opaque = kept;
                }
                _ => panic!("no block for {kept:?}"),
            },
            _ => {}
        }
    }
    let whole: Value = serde_json::from_str(body).unwrap();
    let mut message = said(&["{\"colour\":\"red\"}"]);
    message["phase"] = "final_answer".into();
    check(vec![assistant(content)], json!([whole["output"][0], message]));
}
