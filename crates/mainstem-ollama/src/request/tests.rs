//! Requests, feature by feature.

use std::sync::Arc;

use mainstem_message::{ContentBlock, DataSource, Message, Opaque, Role, ToolCall, ToolResult, ToolState};
use serde_json::json;

use super::*;

fn ask(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { messages: messages.into_iter().map(Arc::new).collect(), ..ModelRequest::default() }
}

/// Returns the body without the fields that every request has for too long prompts.
fn sent(request: &ModelRequest) -> Value {
    let mut body: Value = serde_json::from_slice(&body("qwen3", None, request).unwrap()).unwrap();
    for field in ["truncate", "shift"] {
        assert_eq!(body.as_object_mut().unwrap().remove(field), Some(json!(false)), "{field}");
    }
    body
}

/// Checks the messages.
fn check(messages: Vec<Message>, expected: Value) {
    assert_eq!(sent(&ask(messages))["messages"], expected);
}

/// Checks the whole request for a greeting with these options.
fn check_options(set: impl FnOnce(&mut ModelOptions), expected: Value) {
    let mut whole =
        json!({ "model": "qwen3", "messages": [{ "role": "user", "content": "Hi" }], "stream": true });
    whole.as_object_mut().unwrap().extend(expected.as_object().unwrap().clone());
    assert_eq!(sent(&ModelRequest { options: options(set), ..ask(vec![Message::user("Hi")]) }), whole);
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

fn result(id: &str, content: Vec<ContentBlock>, state: ToolState) -> Message {
    let result = ToolResult { tool_call_id: id.into(), name: "f".into(), content, state };
    Message::new(Role::Tool, vec![ContentBlock::ToolResult(result)])
}

fn said(blocks: Vec<ContentBlock>) -> Message {
    Message::new(Role::Assistant, blocks)
}

#[test]
fn a_plain_question_is_a_small_request() {
    let request = ModelRequest { system: Some("Be brief.".into()), ..ask(vec![Message::user("Hi")]) };
    insta::assert_snapshot!(
        String::from_utf8(body("qwen3", None, &request).unwrap()).unwrap(),
        @r#"{"model":"qwen3","stream":true,"truncate":false,"shift":false,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}]}"#
    );
}

#[test]
fn options_have_the_vendors_names() {
    check_options(
        |options| {
            options.temperature = Some(0.5);
            options.top_p = Some(0.9);
            options.max_output_tokens = Some(100);
            options.stop = vec!["END".into()];
            options.seed = Some(7);
            options.parallel_tool_calls = Some(false);
        },
        json!({ "options": { "temperature": 0.5, "top_p": 0.9, "num_predict": 100, "stop": ["END"], "seed": 7 } }),
    );
}

#[test]
fn fields_of_ones_own_win() {
    check_options(
        |options| {
            options.temperature = Some(0.5);
            options.seed = Some(7);
            options.effort = Some("low".into());
            options.extra.insert("keep_alive".into(), "10m".into());
            options.extra.insert("think".into(), true.into());
            options.extra.insert("stream".into(), false.into());
            options.extra.insert("options".into(), json!({ "temperature": 0.1, "top_k": 40 }));
        },
        json!({
            "options": { "temperature": 0.1, "seed": 7, "top_k": 40 },
            "keep_alive": "10m",
            "think": true,
            "stream": false,
        }),
    );
    check_options(
        |options| drop(options.extra.insert("options".into(), json!({ "num_gpu": 1 }))),
        json!({ "options": { "num_gpu": 1 } }),
    );
    check_options(
        |options| {
            options.seed = Some(7);
            options.extra.insert("options".into(), Value::Null);
        },
        json!({ "options": null }),
    );
    let options = options(|options| drop(options.extra.insert("model".into(), "other".into())));
    let text = String::from_utf8(body("m", None, &ModelRequest { options, ..ask(vec![]) }).unwrap());
    assert_eq!(
        text.unwrap(),
        r#"{"stream":true,"truncate":false,"shift":false,"messages":[],"model":"other"}"#,
        "and stand alone"
    );
}

#[test]
fn the_context_has_a_size() {
    let sent = |options| -> Value {
        serde_json::from_slice(
            &body("qwen3", Some(64_000), &ModelRequest { options, ..ask(vec![]) }).unwrap(),
        )
        .unwrap()
    };
    assert_eq!(sent(options(|_| {}))["options"], json!({ "num_ctx": 64_000 }));
    let own = options(|options| drop(options.extra.insert("options".into(), json!({ "num_ctx": 1 }))));
    assert_eq!(sent(own)["options"], json!({ "num_ctx": 1 }));
}

#[test]
fn thinking_is_a_switch_or_a_level() {
    for (effort, think) in [
        ("none", json!(false)),
        ("off", json!(false)),
        ("false", json!(false)),
        ("on", json!(true)),
        ("true", json!(true)),
        ("low", json!("low")),
        ("medium", json!("medium")),
        ("high", json!("high")),
        ("max", json!("max")),
    ] {
        check_options(|options| options.effort = Some(effort.into()), json!({ "think": think }));
    }
    check_options(|options| options.thinking_budget = Some(0), json!({ "think": false }));
    check_options(
        |options| (options.effort, options.thinking_budget) = (Some("low".into()), Some(9)),
        json!({ "think": "low" }),
    );
    let options = options(|options| options.thinking_budget = Some(9));
    let error = body("qwen3", None, &ModelRequest { options, ..ask(vec![]) }).unwrap_err();
    assert_eq!(error, "takes no thinking_budget; set effort, too, which counts here");
}

#[test]
fn an_answer_can_be_held_to_a_form() {
    check_options(
        |options| options.response_format = Some(ResponseFormat::JsonObject),
        json!({ "format": "json" }),
    );
    let schema = json!({ "type": "object", "properties": { "age": { "$ref": "#/$defs/A" } }, "$defs": { "A": { "const": 1 } } });
    let asked = Arc::new(schema.clone());
    check_options(
        |options| {
            let format = ResponseFormat::JsonSchema { name: "person".into(), schema: asked, strict: true };
            options.response_format = Some(format);
        },
        json!({ "format": schema }),
    );
}

#[test]
fn tools_and_the_choice_among_them() {
    let parameters = json!({ "type": "object", "properties": { "q": { "oneOf": [{ "const": "a" }] } } });
    let tools: Arc<[ToolSpec]> =
        [ToolSpec::new("search", "Searches.", parameters), ToolSpec::new("stop", "Stops.", json!(true))]
            .into();
    let function = |name: &str, description: &str, properties: Value| {
        let parameters = json!({ "type": "object", "properties": properties });
        json!({ "type": "function", "function": { "name": name, "description": description, "parameters": parameters } })
    };
    let search = function("search", "Searches.", json!({ "q": { "anyOf": [{ "enum": ["a"] }] } }));
    let stop = function("stop", "Stops.", json!({}));
    let check = |tool_choice, expected: Value| {
        let body = sent(&ModelRequest { tools: tools.clone(), tool_choice, ..ask(vec![]) });
        let mut whole = json!({ "model": "qwen3", "messages": [], "stream": true });
        if !expected.is_null() {
            whole["tools"] = expected;
        }
        assert_eq!(body, whole);
    };
    check(ToolChoice::Auto, json!([search, stop]));
    check(ToolChoice::Required, json!([search, stop]));
    check(ToolChoice::None, Value::Null);
    check(ToolChoice::Tool("stop".into()), json!([stop]));
}

#[test]
fn text_is_joined_and_images_go_beside_it() {
    check(
        vec![Message::new(
            Role::User,
            vec![ContentBlock::text("a"), base64("image/png"), ContentBlock::text("b")],
        )],
        json!([{ "role": "user", "content": "ab", "images": ["QUI="] }]),
    );
    check(
        vec![Message::new(Role::User, vec![base64("image/jpeg"), base64("image/webp")])],
        json!([{ "role": "user", "content": "", "images": ["QUI=", "QUI="] }]),
    );
    check(
        vec![
            Message::new(Role::System, vec![ContentBlock::text("s")]),
            Message::new(Role::User, vec![]),
            Message::assistant(""),
            Message::assistant("c"),
            Message::assistant("d"),
        ],
        json!([
            { "role": "system", "content": "s" },
            { "role": "assistant", "content": "c" },
            { "role": "assistant", "content": "d" },
        ]),
    );
}

#[test]
fn data_without_a_form_is_refused_by_its_place() {
    let refused = |block: ContentBlock| {
        let second = Message::new(Role::User, vec![ContentBlock::text("Look"), block]);
        body("m", None, &ask(vec![Message::user("Hi"), second])).unwrap_err()
    };
    let says = |what: &str| {
        format!(
            "takes images in base64 and no other data, but block 2 of message 2 is {what}; send it as text, or leave it out"
        )
    };
    assert_eq!(refused(url("image/png")), says("image/png at a URL"));
    assert_eq!(refused(base64("application/pdf")), says("application/pdf"));
    assert_eq!(refused(base64("audio/wav")), says("audio/wav"));
}

#[test]
fn calls_go_back_with_their_thinking_and_results() {
    let call = ToolCall::new("c2", "g", r#"{"b": 2.0, "a": 1}"#);
    let first = said(vec![
        ContentBlock::thinking("hm"),
        ContentBlock::text("Let me see."),
        ContentBlock::ToolCall(ToolCall::new("c1", "f", "")),
        ContentBlock::ToolCall(call),
    ]);
    let results = [
        result("c1", vec![ContentBlock::text("one")], ToolState::Success),
        result("c2", vec![ContentBlock::text("no such file")], ToolState::Error),
        result("c3", vec![], ToolState::Denied),
    ];
    let messages = [vec![first], results.to_vec(), vec![Message::assistant("Done.")]].concat();
    check(
        messages.clone(),
        json!([
            { "role": "assistant", "content": "Let me see.", "thinking": "hm", "tool_calls": [
                { "id": "c1", "type": "function", "function": { "index": 0, "name": "f", "arguments": {} } },
                { "id": "c2", "type": "function", "function": { "index": 1, "name": "g", "arguments": { "b": 2.0, "a": 1 } } },
            ] },
            { "role": "tool", "content": "one", "tool_name": "f", "tool_call_id": "c1" },
            { "role": "tool", "content": "no such file", "tool_name": "f", "tool_call_id": "c2" },
            { "role": "tool", "content": "denied", "tool_name": "f", "tool_call_id": "c3" },
            { "role": "assistant", "content": "Done." },
        ]),
    );
    let text = String::from_utf8(body("m", None, &ask(messages)).unwrap()).unwrap();
    assert!(text.contains(r#""arguments":{"b": 2.0, "a": 1}"#), "as the model wrote them");
}

#[test]
fn what_tools_made_is_shown_or_remarked_upon() {
    let tool =
        |content: &str| json!({ "role": "tool", "content": content, "tool_name": "f", "tool_call_id": "c" });
    let mut shown = tool("a page");
    shown["images"] = json!(["QUI="]);
    check(
        vec![
            result("c", vec![ContentBlock::text("a page"), base64("image/png")], ToolState::Success),
            result("c", vec![ContentBlock::text("a film"), base64("video/mp4")], ToolState::Success),
            result("c", vec![url("image/png")], ToolState::Success),
        ],
        json!([
            shown,
            tool("a film\n(data omitted: unsupported type)"),
            tool("(data omitted: unsupported type)")
        ]),
    );
}

#[test]
fn thinking_of_others_goes_back_without_what_they_keep_with_it() {
    let mut opaque = Opaque::new();
    opaque.insert("anthropic".into(), json!({ "signature": "s" }));
    let thinking = ContentBlock::Thinking { thinking: "hm".into(), opaque };
    check(
        vec![said(vec![thinking.clone(), ContentBlock::text("a")]), said(vec![thinking])],
        json!([{ "role": "assistant", "content": "a", "thinking": "hm" }]),
    );
}
