//! Requests, feature by feature.

use std::sync::Arc;

use mainstem_message::{ContentBlock, DataSource, Message, Opaque, Role, ToolCall, ToolResult, ToolState};
use mainstem_model::ModelOptions;

use super::*;

fn ask(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { messages: messages.into_iter().map(Arc::new).collect(), ..ModelRequest::default() }
}

fn sent(request: &ModelRequest, dialect: &Dialect) -> Value {
    serde_json::from_slice(&body("gpt-4o-mini", request, dialect).unwrap()).unwrap()
}

/// Checks the messages.
fn check(messages: Vec<Message>, expected: Value) {
    assert_eq!(sent(&ask(messages), &Dialect::default())["messages"], expected);
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

fn result(id: &str, content: Vec<ContentBlock>, state: ToolState) -> Message {
    let result = ToolResult { tool_call_id: id.into(), name: "f".into(), content, state };
    Message::new(Role::Tool, vec![ContentBlock::ToolResult(result)])
}

fn calls(calls: Vec<ToolCall>) -> Message {
    Message::new(Role::Assistant, calls.into_iter().map(ContentBlock::ToolCall).collect())
}

#[test]
fn a_plain_question_is_a_small_request() {
    let request = ModelRequest { system: Some("Be brief.".into()), ..ask(vec![Message::user("Hi")]) };
    let body = body("gpt-4o-mini", &request, &Dialect::default()).unwrap();
    insta::assert_snapshot!(
        String::from_utf8(body).unwrap(),
        @r#"{"model":"gpt-4o-mini","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}]}"#
    );
}

#[test]
fn openais_own_fields_are_sent_to_it_alone() {
    let request = ModelRequest { cache_key: Some("c".into()), ..ask(vec![]) };
    let fields = |dialect: Dialect| {
        let mut body = sent(&request, &dialect);
        body.as_object_mut().unwrap().retain(|name, _| !["model", "messages", "stream"].contains(&&**name));
        body.to_string()
    };
    let own = || Dialect { own_fields: true, ..Dialect::default() };
    assert_eq!(
        fields(own()),
        r#"{"stream_options":{"include_usage":true,"include_obfuscation":false},"prompt_cache_key":"c"}"#
    );
    assert_eq!(fields(Dialect { no_usage: true, ..own() }), r#"{"prompt_cache_key":"c"}"#);
    assert_eq!(fields(Dialect { whole: Some("no".into()), ..own() }), r#"{"prompt_cache_key":"c"}"#);
    assert_eq!(fields(Dialect::default()), r#"{"stream_options":{"include_usage":true}}"#);
    let once = sent(&ask(vec![]), &own());
    assert_eq!(once.get("prompt_cache_key"), None, "a prompt that is sent once");
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
        options.extra.insert("top_k".into(), 40.into());
        options.extra.insert("temperature".into(), 0.1.into());
        options.extra.insert("stream_options".into(), Value::Null);
    });
    let request = ModelRequest { options, ..ask(vec![Message::user("Hi")]) };
    let expected = json!({
        "model": "gpt-4o-mini",
        "messages": [{ "role": "user", "content": "Hi" }],
        "top_p": 0.9,
        "max_tokens": 100,
        "stop": ["END"],
        "seed": 7,
        "reasoning_effort": "low",
        "response_format": { "type": "json_object" },
        "stream": true,
        "top_k": 40,
        "temperature": 0.1,
        "stream_options": null,
    });
    assert_eq!(
        sent(&request, &Dialect::default()),
        expected,
        "extra wins; nothing about tools without tools"
    );
    let text = String::from_utf8(body("m", &request, &Dialect::default()).unwrap()).unwrap();
    assert_eq!(text.matches("\"temperature\"").count(), 1, "and stands alone");
}

#[test]
fn a_schema_can_be_asked_for() {
    let check = |schema: Value, strict: bool| {
        let asked = Arc::new(schema.clone());
        let format = ResponseFormat::JsonSchema { name: "colour".into(), schema: asked, strict: true };
        let options = options(|options| options.response_format = Some(format));
        let request = ModelRequest { options, ..ask(vec![]) };
        let json_schema = json!({ "name": "colour", "schema": schema, "strict": strict });
        assert_eq!(
            sent(&request, &Dialect::default())["response_format"],
            json!({ "type": "json_schema", "json_schema": json_schema })
        );
    };
    let object = |required: Value, additional: bool| {
        let properties = json!({ "a": { "type": "string" }, "b": { "type": ["string", "null"] } });
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": additional })
    };
    check(object(json!(["a", "b"]), false), true);
    // A schema that strict mode would refuse is not strict.
    check(object(json!(["a"]), false), false);
    check(object(json!(["a", "b"]), true), false);
    check(json!({ "type": "object" }), false);
    let list = |items| {
        let properties = json!({ "list": { "type": "array", "items": items } });
        json!({ "type": "object", "properties": properties, "required": ["list"], "additionalProperties": false })
    };
    check(list(object(json!(["b", "a"]), false)), true);
    check(list(object(json!([]), false)), false);
    check(list(json!({ "anyOf": [{ "type": "null" }, object(json!([]), false)] })), false);
}

#[test]
fn tools_and_the_choice_among_them() {
    let tools: Arc<[ToolSpec]> = [ToolSpec::new("search", "Searches.", json!({ "type": "object" }))].into();
    let options = options(|options| options.parallel_tool_calls = Some(true));
    let check = |tool_choice, expected: Value| {
        let (tools, options) = (tools.clone(), options.clone());
        let body = sent(&ModelRequest { tools, tool_choice, options, ..ask(vec![]) }, &Dialect::default());
        let function =
            json!({ "name": "search", "description": "Searches.", "parameters": { "type": "object" } });
        assert_eq!(body["tools"], json!([{ "type": "function", "function": function }]));
        assert_eq!(body["parallel_tool_calls"], true);
        assert_eq!(body["tool_choice"], expected);
    };
    check(ToolChoice::Auto, Value::Null);
    check(ToolChoice::None, json!("none"));
    check(ToolChoice::Required, json!("required"));
    check(ToolChoice::Tool("search".into()), json!({ "type": "function", "function": { "name": "search" } }));
}

#[test]
fn text_is_a_string_and_data_makes_parts() {
    let blocks = |blocks| vec![Message::new(Role::User, blocks)];
    let image = |url: &str| json!({ "type": "image_url", "image_url": { "url": url } });
    check(
        blocks(vec![ContentBlock::text("a"), ContentBlock::text("b")]),
        json!([{ "role": "user", "content": "ab" }]),
    );
    check(
        blocks(vec![ContentBlock::text("What?"), base64("image/png")]),
        json!([{ "role": "user", "content": [{ "type": "text", "text": "What?" }, image("data:image/png;base64,QUI=")] }]),
    );
    check(
        blocks(vec![data("image/jpeg", DataSource::Url("https://h/a.jpg".into()))]),
        json!([{ "role": "user", "content": [image("https://h/a.jpg")] }]),
    );
    check(
        blocks(vec![base64("audio/mpeg"), base64("application/pdf")]),
        json!([{ "role": "user", "content": [
            { "type": "input_audio", "input_audio": { "data": "QUI=", "format": "mp3" } },
            { "type": "file", "file": { "filename": "file.pdf", "file_data": "data:application/pdf;base64,QUI=" } },
        ] }]),
    );
    check(
        vec![Message::new(Role::System, vec![ContentBlock::text("s")])],
        json!([{ "role": "system", "content": "s" }]),
    );
    check(blocks(vec![]), json!([]));
}

#[test]
fn data_without_a_form_is_refused() {
    for block in [base64("video/mp4"), data("audio/wav", DataSource::Url("https://h/a.wav".into()))] {
        let request = ask(vec![Message::new(Role::User, vec![block])]);
        let error = body("m", &request, &Dialect::default()).unwrap_err();
        assert!(error.starts_with("takes images"), "{error}");
    }
}

#[test]
fn calls_go_back_with_their_results() {
    let mut signed = ToolCall::new("c2", "f", r#"{"b": 2}"#);
    signed.opaque.insert("extra_content".into(), json!({ "google": { "thought_signature": "s" } }));
    let mut first = calls(vec![ToolCall::new("c1", "f", ""), signed]);
    first.content.insert(0, ContentBlock::thinking("hm"));
    check(
        vec![
            first,
            result("c1", vec![ContentBlock::text("one")], ToolState::Success),
            result("c2", vec![], ToolState::Denied),
            Message::assistant("Done."),
        ],
        json!([
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" } },
                { "id": "c2", "type": "function", "function": { "name": "f", "arguments": "{\"b\": 2}" },
                  "extra_content": { "google": { "thought_signature": "s" } } },
            ] },
            { "role": "tool", "tool_call_id": "c1", "content": "one" },
            { "role": "tool", "tool_call_id": "c2", "content": "denied" },
            { "role": "assistant", "content": "Done." },
        ]),
    );
}

#[test]
fn data_of_results_follows_them() {
    let shot = vec![ContentBlock::text("a page"), base64("image/png")];
    check(
        vec![
            result("c1", shot, ToolState::Success),
            result("c2", vec![base64("video/mp4")], ToolState::Success),
            Message::user("And?"),
        ],
        json!([
            { "role": "tool", "tool_call_id": "c1", "content": "a page\n(data: see the next message)" },
            { "role": "tool", "tool_call_id": "c2", "content": "(data omitted: unsupported type)" },
            { "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "data:image/png;base64,QUI=" } }] },
            { "role": "user", "content": "And?" },
        ]),
    );
}

#[test]
fn thinking_is_kept_back_and_an_empty_turn_left_out() {
    let thought = || Message::new(Role::Assistant, vec![ContentBlock::thinking("hm")]);
    check(
        vec![Message::user("Hi"), thought(), Message::assistant("")],
        json!([{ "role": "user", "content": "Hi" }]),
    );
}

#[test]
fn a_dialect_changes_the_request() {
    let options = options(|options| options.max_output_tokens = Some(5));
    let mut message = calls(vec![ToolCall::new("c", "f", "{}")]);
    message.content.insert(0, ContentBlock::thinking("hm"));
    let request = ModelRequest { options, ..ask(vec![message]) };
    let dialect = Dialect {
        no_usage: true,
        completion_tokens: true,
        reasoning: true,
        random_seed: true,
        ..Dialect::default()
    };
    let body = sent(&request, &dialect);
    assert_eq!(body["messages"][0]["reasoning_content"], "hm");
    assert_eq!((&body["max_completion_tokens"], body.get("max_tokens")), (&json!(5), None));
    assert_eq!((&body["stream"], body.get("stream_options")), (&json!(true), None));

    let body = sent(&request, &Dialect { whole: Some("no".into()), ..Dialect::default() });
    assert_eq!((&body["stream"], body.get("stream_options")), (&json!(false), None));
}

#[test]
fn a_model_thinks_by_an_effort_or_a_budget() {
    let check = |effort: Option<&str>, budget: Option<u32>, dialect: &Dialect, expected: Value| {
        let options =
            options(|options| (options.effort, options.thinking_budget) = (effort.map(Into::into), budget));
        let body = sent(&ModelRequest { options, ..ask(vec![]) }, dialect);
        let fields = ["reasoning_effort", "reasoning"].map(|name| body.get(name));
        assert_eq!(json!(fields), expected, "{effort:?} {budget:?}");
    };
    let openai = Dialect::default();
    check(Some("low"), None, &openai, json!(["low", null]));
    check(Some("low"), Some(9), &openai, json!(["low", null]));
    check(None, Some(0), &openai, json!(["none", null]));
    let open_router = Dialect { thinking_budget: true, ..Dialect::default() };
    check(Some("low"), None, &open_router, json!(["low", null]));
    check(Some("low"), Some(9), &open_router, json!([null, { "max_tokens": 9 }]));
    let plain = Dialect { no_effort: true, ..Dialect::default() };
    check(Some("low"), None, &plain, json!([null, null]));
    let options = options(|options| options.thinking_budget = Some(9));
    let error = body("m", &ModelRequest { options, ..ask(vec![]) }, &openai).unwrap_err();
    assert_eq!(error, "takes no thinking_budget; set effort, too, which counts here");
}
