//! Requests, feature by feature.

use std::sync::Arc;

use mainstem_message::{ContentBlock, DataSource, Message, Opaque, Role, ToolCall, ToolResult, ToolState};
use mainstem_model::PromptCache::{self, FiveMinutes, Off, OneHour};

use super::*;
fn ask(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { messages: messages.into_iter().map(Arc::new).collect(), ..ModelRequest::default() }
}

fn sent(request: &ModelRequest) -> Value {
    let body = body("claude", request, &Dialect::default()).unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// Checks the messages.
fn check(messages: Vec<Message>, expected: Value) {
    assert_eq!(sent(&ask(messages))["messages"], expected);
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

fn assistant(blocks: Vec<ContentBlock>) -> Message {
    Message::new(Role::Assistant, blocks)
}

fn call(id: &str, arguments: &str) -> ContentBlock {
    ContentBlock::ToolCall(ToolCall::new(id, "f", arguments))
}

/// Returns a thinking block with what a vendor wants back.
fn thinking(thinking: &str, opaque: Value) -> ContentBlock {
    let opaque = opaque.as_object().cloned().unwrap();
    ContentBlock::Thinking { thinking: thinking.into(), opaque }
}

fn signed(text: &str) -> ContentBlock {
    thinking(text, json!({ "anthropic": { "signature": "s" } }))
}

fn tools() -> Arc<[ToolSpec]> {
    [ToolSpec::new("search", "Searches.", json!({ "type": "object" }))].into()
}

#[test]
fn a_plain_question_is_a_small_request() {
    let request = ModelRequest { system: Some("Be brief.".into()), ..ask(vec![Message::user("Hi")]) };
    let body = body("claude-sonnet-4-5", &request, &Dialect::default()).unwrap();
    insta::assert_snapshot!(
        String::from_utf8(body).unwrap(),
        @r#"{"model":"claude-sonnet-4-5","max_tokens":32000,"stream":true,"system":"Be brief.","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}"#
    );
}

#[test]
fn options_have_the_vendors_names() {
    let options = options(|options| {
        options.temperature = Some(0.5);
        options.top_p = Some(0.9);
        options.max_output_tokens = Some(100);
        options.stop = vec!["END".into()];
        options.seed = Some(7);
        options.response_format = Some(ResponseFormat::JsonObject);
        options.parallel_tool_calls = Some(false);
        options.extra.insert("top_k".into(), 40.into());
        options.extra.insert("temperature".into(), 0.1.into());
        options.extra.insert("metadata".into(), json!({ "user_id": "u" }));
    });
    let request = ModelRequest { options, ..ask(vec![Message::user("Hi")]) };
    let expected = json!({
        "model": "claude",
        "max_tokens": 100,
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": "Hi" }] }],
        "top_p": 0.9,
        "stop_sequences": ["END"],
        "stream": true,
        "top_k": 40,
        "temperature": 0.1,
        "metadata": { "user_id": "u" },
    });
    assert_eq!(sent(&request), expected, "extra wins; nothing about tools without tools");
    let text = String::from_utf8(body("m", &request, &Dialect::default()).unwrap()).unwrap();
    assert_eq!(text.matches("\"temperature\"").count(), 1, "and stands alone");

    let plain = body("claude", &request, &Dialect { no_sampling: true, ..Dialect::default() }).unwrap();
    let plain: Value = serde_json::from_slice(&plain).unwrap();
    assert_eq!((plain.get("top_p"), &plain["temperature"]), (None, &json!(0.1)), "what is set by hand stays");
}

/// Returns the body of a request whose prompt is cached, without the fields before it.
fn cached(cache: PromptCache, request: &ModelRequest, dialect: &Dialect) -> String {
    let mut request = request.clone();
    Arc::make_mut(&mut request.options).prompt_cache = Some(cache);
    let body = body("m", &request, dialect).unwrap();
    let mut body: Value = serde_json::from_slice(&body).unwrap();
    body.as_object_mut().unwrap().retain(|name, _| !["model", "max_tokens", "stream"].contains(&&**name));
    body.to_string()
}

/// Returns a conversation with this many calls of tools, one after the other.
fn conversation(calls: usize) -> ModelRequest {
    let mut messages = vec![Message::user("Go")];
    for number in 0..calls {
        let id = format!("c{number}");
        messages.push(assistant(vec![call(&id, "{}")]));
        messages.push(result(&id, vec![ContentBlock::text("done")], ToolState::Success));
    }
    let (cache_key, system) = (Some("c".into()), Some("Be brief.".into()));
    ModelRequest { cache_key, system, tools: tools(), ..ask(messages) }
}

#[test]
fn a_prompt_is_cached_up_to_four_places() {
    let shown = [(FiveMinutes, 0), (FiveMinutes, 2), (OneHour, 0), (Off, 0)]
        .map(|(cache, calls)| cached(cache, &conversation(calls), &Dialect::default()));
    insta::assert_snapshot!(shown.join("\n"));
    let marks = |request: &ModelRequest, dialect: &Dialect| {
        cached(FiveMinutes, request, dialect).matches("cache_control").count()
    };
    let dialect = Dialect::default();
    assert_eq!(marks(&conversation(30), &dialect), 4);
    assert_eq!(marks(&ModelRequest { cache_key: None, ..conversation(2) }, &dialect), 0, "sent once");
    assert_eq!(marks(&ModelRequest { cache_key: Some("c".into()), ..ask(vec![]) }, &dialect), 0);
    assert_eq!(marks(&conversation(2), &Dialect { no_caching: true, ..dialect }), 0, "a server without one");
    let options = options(|options| {
        options.extra.insert("cache_control".into(), json!({ "type": "ephemeral" }));
    });
    assert_eq!(marks(&ModelRequest { options, ..conversation(2) }, &dialect), 1, "the automatic form");
}

#[test]
fn a_prompt_that_grows_has_a_breakpoint_where_the_last_one_ended() {
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    let sent = |calls| cached(FiveMinutes, &conversation(calls), &Dialect::default());
    for calls in 0..9 {
        let (before, after) = (sent(calls), sent(calls + 1));
        let end = before.rfind(mark).unwrap() + mark.len();
        let shared = |text: &str| text.replace(mark, "");
        let (cached, _) = after.split_at(after.rfind(mark).unwrap());
        let cached = &cached[..cached.rfind(mark).unwrap() + mark.len()];
        assert_eq!(shared(cached), shared(&before[..end]), "after {calls} calls");
    }
}

#[test]
fn a_model_thinks_by_an_effort_or_a_budget() {
    let check = |effort: Option<&str>, budget: Option<u32>, tool_choice: ToolChoice, expected: Value| {
        let options =
            options(|options| (options.effort, options.thinking_budget) = (effort.map(Into::into), budget));
        let mut body = sent(&ModelRequest { options, tools: tools(), tool_choice, ..ask(vec![]) });
        for other in ["model", "messages", "tools", "tool_choice", "stream"] {
            body.as_object_mut().unwrap().remove(other);
        }
        assert_eq!(body, expected, "{effort:?} {budget:?}");
    };
    for word in ["low", "medium", "high", "xhigh", "max", "what comes next"] {
        check(Some(word), None, ToolChoice::Auto, adaptive(word));
    }
    check(Some(" low "), None, ToolChoice::Required, adaptive("low"));
    check(Some("minimal"), None, ToolChoice::Auto, adaptive("low"));
    check(None, Some(1), ToolChoice::Auto, manual(1024, 33_024));
    check(None, Some(10_000), ToolChoice::Auto, manual(10_000, 42_000));
    check(Some("low"), Some(10_000), ToolChoice::None, manual(10_000, 42_000));
    let plain = json!({ "max_tokens": 32_000 });
    check(None, Some(10_000), ToolChoice::Required, plain.clone());
    check(None, Some(10_000), ToolChoice::Tool("search".into()), plain.clone());
    check(Some(""), None, ToolChoice::Auto, plain.clone());
    check(None, None, ToolChoice::Auto, plain);
    // Without tools no choice is sent that could forbid it.
    let options = options(|options| options.thinking_budget = Some(10_000));
    let body = sent(&ModelRequest { options, tool_choice: ToolChoice::Required, ..ask(vec![]) });
    assert_eq!((&body["thinking"]["budget_tokens"], body.get("tool_choice")), (&json!(10_000), None));
    let off = json!({ "max_tokens": 32_000, "thinking": { "type": "disabled" } });
    check(Some("none"), None, ToolChoice::Auto, off.clone());
    check(Some("high"), Some(0), ToolChoice::Required, off);
    check(None, Some(u32::MAX), ToolChoice::Auto, manual(u32::MAX, u32::MAX));
}

fn adaptive(effort: &str) -> Value {
    json!({
        "max_tokens": 32_000,
        "thinking": { "type": "adaptive", "display": "summarized" },
        "output_config": { "effort": effort },
    })
}

fn manual(budget: u32, most: u32) -> Value {
    let thinking = json!({ "type": "enabled", "budget_tokens": budget, "display": "summarized" });
    json!({ "max_tokens": most, "thinking": thinking })
}

#[test]
fn a_form_of_thinking_that_is_refused_is_left_out() {
    let check = |effort: Option<&str>, budget: Option<u32>, dialect: Dialect, expected: Value| {
        let options =
            options(|options| (options.effort, options.thinking_budget) = (effort.map(Into::into), budget));
        let request = ModelRequest { options, ..ask(vec![]) };
        let body = body("m", &request, &dialect).unwrap();
        let mut body: Value = serde_json::from_slice(&body).unwrap();
        for other in ["model", "messages", "stream"] {
            body.as_object_mut().unwrap().remove(other);
        }
        assert_eq!(body, expected, "{effort:?} {budget:?}");
    };
    let no_budget = Dialect { no_budget: true, ..Dialect::default() };
    check(Some("low"), Some(2048), no_budget, adaptive("low"));
    check(None, Some(2048), no_budget, manual(2048, 34_048));
    let no_effort = Dialect { no_effort: true, ..Dialect::default() };
    check(Some("low"), None, no_effort, json!({ "max_tokens": 32_000 }));
    check(Some("low"), Some(2048), no_effort, manual(2048, 34_048));
}

#[test]
fn a_thinking_budget_leaves_room_for_an_answer() {
    let check = |budget: u32, most: u32, expected: Result<(), &str>| {
        let options = options(|options| {
            (options.thinking_budget, options.max_output_tokens) = (Some(budget), Some(most));
        });
        let request = ModelRequest { options, ..ask(vec![]) };
        let made = body("m", &request, &Dialect::default()).map(drop);
        assert_eq!(made, expected.map_err(str::to_owned));
    };
    let why =
        "thinking_budget must be below max_output_tokens, which counts thinking: 2048 is not below 2048";
    check(2048, 2048, Err(why));
    check(2048, 2049, Ok(()));
    // The least that the API takes is more than the request has.
    let why = "max_output_tokens must be above thinking_budget, which is at least 1024 at Anthropic: 800 is not above 1024";
    check(500, 800, Err(why));
    check(500, 1025, Ok(()));
}

#[test]
fn sampling_is_the_models_own_while_it_thinks() {
    let check = |effort: &str, top_p: f64, expected: [Option<f64>; 2]| {
        let options = options(|options| {
            options.thinking_budget = effort.parse().ok();
            options.effort = Some(effort.into());
            (options.temperature, options.top_p) = (Some(0.2), Some(top_p));
        });
        let body = sent(&ModelRequest { options, ..ask(vec![]) });
        assert_eq!(["temperature", "top_p"].map(|name| body.get(name).and_then(Value::as_f64)), expected);
    };
    check("high", 0.9, [None, None]);
    check("high", 0.95, [None, Some(0.95)]);
    check("2048", 0.9, [None, None]);
    check("none", 0.9, [Some(0.2), Some(0.9)]);
}

#[test]
fn a_schema_can_be_asked_for() {
    let schema =
        Arc::new(json!({ "type": "object", "properties": { "n": { "type": "integer", "minimum": 1 } } }));
    let format = ResponseFormat::JsonSchema { name: "number".into(), schema, strict: false };
    let options = options(|options| {
        options.response_format = Some(format);
        options.effort = Some("low".into());
    });
    assert_eq!(
        sent(&ModelRequest { options, ..ask(vec![]) })["output_config"],
        json!({
            "effort": "low",
            "format": { "type": "json_schema", "schema": {
                "type": "object",
                "properties": { "n": { "type": "integer", "description": "{minimum: 1}" } },
                "additionalProperties": false,
            } },
        })
    );
}

#[test]
fn tools_and_the_choice_among_them() {
    let check = |tool_choice, parallel, expected: Value| {
        let options = options(|options| options.parallel_tool_calls = parallel);
        let body = sent(&ModelRequest { tools: tools(), tool_choice, options, ..ask(vec![]) });
        assert_eq!(
            body["tools"],
            json!([{ "name": "search", "description": "Searches.", "input_schema": { "type": "object" } }])
        );
        assert_eq!(body["tool_choice"], expected);
        assert_eq!(body.get("parallel_tool_calls"), None);
    };
    check(ToolChoice::Auto, None, Value::Null);
    check(ToolChoice::Auto, Some(true), Value::Null);
    check(ToolChoice::Auto, Some(false), json!({ "type": "auto", "disable_parallel_tool_use": true }));
    check(ToolChoice::None, Some(false), json!({ "type": "none" }));
    check(ToolChoice::Required, None, json!({ "type": "any" }));
    check(ToolChoice::Required, Some(false), json!({ "type": "any", "disable_parallel_tool_use": true }));
    check(ToolChoice::Tool("search".into()), Some(true), json!({ "type": "tool", "name": "search" }));
    check(
        ToolChoice::Tool("search".into()),
        Some(false),
        json!({ "type": "tool", "name": "search", "disable_parallel_tool_use": true }),
    );
    let union = ToolSpec::new("u", "", json!({ "anyOf": [{ "properties": { "a": {} } }] }));
    let body = sent(&ModelRequest { tools: [union].into(), ..ask(vec![]) });
    assert_eq!(body["tools"][0]["input_schema"], json!({ "type": "object", "properties": { "a": {} } }));
}

#[test]
fn system_messages_join_the_instructions_or_remind() {
    let system = |text: &str| Message::new(Role::System, vec![ContentBlock::text(text)]);
    let check = |own: Option<&str>, messages: Vec<Message>, instructions: Value, turns: Value| {
        let body = sent(&ModelRequest { system: own.map(Into::into), ..ask(messages) });
        assert_eq!((&body["system"], &body["messages"]), (&instructions, &turns));
    };
    let hi = json!([{ "role": "user", "content": [{ "type": "text", "text": "Hi" }] }]);
    check(
        Some("a"),
        vec![system("b"), system(" "), system("c"), Message::user("Hi")],
        json!("a\n\nb\n\nc"),
        hi.clone(),
    );
    check(None, vec![system("b"), Message::user("Hi")], json!("b"), hi.clone());
    check(Some(""), vec![Message::user("Hi"), system("")], Value::Null, hi);
    check(
        None,
        vec![Message::user("Hi"), system("Be kind.")],
        Value::Null,
        json!([{ "role": "user", "content": [
            { "type": "text", "text": "Hi" },
            { "type": "text", "text": "<system-reminder>\nBe kind.\n</system-reminder>" },
        ] }]),
    );
}

#[test]
fn images_and_files() {
    check(
        vec![Message::new(
            Role::User,
            vec![
                ContentBlock::text("What?"),
                base64("image/png"),
                base64("image/webp"),
                url("image/svg+xml"),
                base64("application/pdf"),
                url("application/pdf"),
                ContentBlock::text(" \n"),
            ],
        )],
        json!([{ "role": "user", "content": [
            { "type": "text", "text": "What?" },
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "QUI=" } },
            { "type": "image", "source": { "type": "base64", "media_type": "image/webp", "data": "QUI=" } },
            { "type": "image", "source": { "type": "url", "url": "https://h/a" } },
            { "type": "document", "source": { "type": "base64", "media_type": "application/pdf", "data": "QUI=" } },
            { "type": "document", "source": { "type": "url", "url": "https://h/a" } },
        ] }]),
    );
}

#[test]
fn data_without_a_form_is_refused_with_its_place() {
    let check = |message: Message, place: &str| {
        let request = ask(vec![Message::user("Hi"), message]);
        let error = body("m", &request, &Dialect::default()).unwrap_err();
        let takes =
            "it takes JPEG, PNG, GIF and WebP images and PDF files of the user's; send other data as text";
        assert_eq!(error, format!("has no form for {place}: {takes}"));
    };
    let user = |block| Message::new(Role::User, vec![ContentBlock::text("Look"), block]);
    check(user(base64("video/mp4")), "video/mp4, block 2 of message 2");
    check(user(base64("image/svg+xml")), "image/svg+xml, block 2 of message 2");
    check(user(url("text/plain")), "text/plain, block 2 of message 2");
    check(assistant(vec![base64("image/png")]), "image/png, block 1 of message 2");
}

#[test]
fn calls_go_back_with_their_results_in_one_turn() {
    let mut answer = vec![signed("hm"), ContentBlock::text("Let me see.")];
    answer.extend([call("c1", ""), call("c2", r#"{"b": [2.50]}"#)]);
    check(
        vec![
            Message::user("Go"),
            assistant(answer),
            result("c1", vec![ContentBlock::text("one")], ToolState::Success),
            Message::user("Hurry up"),
            result("c2", vec![], ToolState::Denied),
            assistant(vec![ContentBlock::text("Done."), ContentBlock::text("Really.")]),
        ],
        json!([
            { "role": "user", "content": [{ "type": "text", "text": "Go" }] },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "s" },
                { "type": "text", "text": "Let me see." },
                { "type": "tool_use", "id": "c1", "name": "f", "input": {} },
                { "type": "tool_use", "id": "c2", "name": "f", "input": { "b": [2.50] } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "c1", "content": "one" },
                { "type": "tool_result", "tool_use_id": "c2", "content": "denied", "is_error": true },
                { "type": "text", "text": "Hurry up" },
            ] },
            { "role": "assistant", "content": [{ "type": "text", "text": "Done." }, { "type": "text", "text": "Really." }] },
        ]),
    );
}

#[test]
fn a_result_says_how_it_went_and_may_hold_images() {
    let check = |content: Vec<ContentBlock>, state, expected: Value| {
        let body = sent(&ask(vec![result("c", content, state)]));
        let mut block = json!({ "type": "tool_result", "tool_use_id": "c" });
        block.as_object_mut().unwrap().extend(expected.as_object().cloned().unwrap());
        assert_eq!(body["messages"], json!([{ "role": "user", "content": [block] }]));
    };
    let text = || vec![ContentBlock::text("a"), ContentBlock::text("b")];
    check(text(), ToolState::Success, json!({ "content": "ab" }));
    check(text(), ToolState::Running, json!({ "content": "ab" }));
    check(text(), ToolState::Error, json!({ "content": "ab", "is_error": true }));
    check(text(), ToolState::Interrupted, json!({ "content": "ab", "is_error": true }));
    check(vec![], ToolState::Success, json!({ "content": "success" }));
    check(vec![ContentBlock::text(" \n")], ToolState::Success, json!({ "content": "success" }));
    check(
        vec![
            ContentBlock::text("a page"),
            base64("image/png"),
            base64("video/mp4"),
            url("application/pdf"),
            ContentBlock::text(""),
        ],
        ToolState::Success,
        json!({ "content": [
            { "type": "text", "text": "a page" },
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "QUI=" } },
            { "type": "text", "text": "(video/mp4 data that you cannot be shown)" },
            { "type": "document", "source": { "type": "url", "url": "https://h/a" } },
        ] }),
    );
}

#[test]
fn data_of_a_failed_call_stands_behind_all_results() {
    let failed = vec![ContentBlock::text("The page is broken."), base64("image/png")];
    check(
        vec![
            result("c1", failed, ToolState::Error),
            result("c2", vec![base64("image/png")], ToolState::Interrupted),
            Message::user("And?"),
        ],
        json!([{ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "c1", "content": "The page is broken.", "is_error": true },
            { "type": "tool_result", "tool_use_id": "c2", "content": "interrupted", "is_error": true },
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "QUI=" } },
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "QUI=" } },
            { "type": "text", "text": "And?" },
        ] }]),
    );
}

#[test]
fn blocks_of_the_vendors_own_tools_go_back_as_they_came() {
    let server = |block: &Value| thinking("", json!({ "anthropic": { "server": block.to_string() } }));
    let call =
        json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": { "query": "x" } });
    let found =
        json!({ "type": "web_search_tool_result", "tool_use_id": "s", "content": [{ "title": "X" }] });
    let said = assistant(vec![ContentBlock::text("I search."), server(&call), server(&found)]);
    let text = json!({ "type": "text", "text": "I search." });
    // A turn that was paused ends with them.
    check(vec![said], json!([{ "role": "assistant", "content": [text, call, found] }]));
    let odd = thinking("", json!({ "anthropic": { "server": "{" } }));
    check(
        vec![assistant(vec![ContentBlock::text("I search."), odd])],
        json!([{ "role": "assistant", "content": [text] }]),
    );
}

/// The API refuses such a call, unless it goes on with it.
#[test]
fn a_call_of_the_vendors_own_tools_without_a_result_goes_back_only_at_the_end() {
    let server = |block: &Value| thinking("", json!({ "anthropic": { "server": block.to_string() } }));
    let search =
        json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": { "query": "x" } });
    let said = || assistant(vec![ContentBlock::text("I search."), server(&search)]);
    let text = json!({ "type": "text", "text": "I search." });
    let paused = json!({ "role": "assistant", "content": [text, search] });
    check(vec![said()], json!([paused]));
    // An answer that was cut or cancelled, after which the user goes on.
    let go_on = json!({ "role": "user", "content": [{ "type": "text", "text": "Well?" }] });
    let cut = json!({ "role": "assistant", "content": [text] });
    check(vec![said(), Message::user("Well?")], json!([cut, go_on]));
    let alone = assistant(vec![signed("Hm."), server(&search)]);
    check(vec![alone, Message::user("Well?")], json!([go_on]));
    // Beside a call of ours, whose result the vendor waits for.
    let mixed = || {
        let blocks = vec![server(&search), call("c", "{}")];
        [assistant(blocks), result("c", vec![ContentBlock::text("42")], ToolState::Success)]
    };
    let tool_use = json!({ "type": "tool_use", "id": "c", "name": "f", "input": {} });
    let found = json!({ "type": "tool_result", "tool_use_id": "c", "content": "42" });
    let answered = |more: Value| json!({ "role": "user", "content": more });
    check(
        mixed().into(),
        json!([{ "role": "assistant", "content": [search, tool_use] }, answered(json!([found]))]),
    );
    let mut hinted = Vec::from(mixed());
    hinted.push(Message::user("Well?"));
    check(
        hinted,
        json!([
            { "role": "assistant", "content": [tool_use] },
            answered(json!([found, { "type": "text", "text": "Well?" }])),
        ]),
    );
}

#[test]
fn thinking_goes_back_as_it_came_if_it_is_ours() {
    let redacted = thinking("", json!({ "anthropic": { "redacted": "d==" } }));
    let strangers = || {
        [
            ContentBlock::thinking("unsigned"),
            thinking("theirs", json!({ "signature": "s", "google": { "signature": "s" } })),
            thinking("odd", json!({ "anthropic": { "signature": 1 } })),
        ]
    };
    let mut blocks = vec![signed(""), redacted];
    blocks.extend(strangers());
    blocks.push(ContentBlock::text("So."));
    check(
        vec![assistant(blocks)],
        json!([{ "role": "assistant", "content": [
            { "type": "thinking", "thinking": "", "signature": "s" },
            { "type": "redacted_thinking", "data": "d==" },
            { "type": "text", "text": "So." },
        ] }]),
    );
    // An answer of nothing that can go back leaves one turn of the user's.
    let said = |text: &str| json!({ "type": "text", "text": text });
    check(
        vec![Message::user("a"), assistant(strangers().into()), Message::user("b")],
        json!([{ "role": "user", "content": [said("a"), said("b")] }]),
    );
    // No turn of the model's may end in thinking.
    check(
        vec![
            Message::user("a"),
            assistant(vec![signed("hm")]),
            Message::user("b"),
            assistant(vec![signed("hm")]),
        ],
        json!([{ "role": "user", "content": [said("a"), said("b")] }]),
    );
    check(
        vec![assistant(vec![ContentBlock::text("x"), signed("hm")]), Message::user("b")],
        json!([{ "role": "assistant", "content": [said("x")] }, { "role": "user", "content": [said("b")] }]),
    );
}

#[test]
fn ids_of_other_vendors_fit() {
    for (id, fits) in [("toolu_0-9", "toolu_0-9"), ("call:1.a", "call_1_a"), ("é", "_"), ("", "_")] {
        let messages = vec![assistant(vec![call(id, "{}")]), result(id, vec![], ToolState::Success)];
        let body = sent(&ask(messages));
        assert_eq!(body["messages"][0]["content"][0]["id"], fits);
        assert_eq!(body["messages"][1]["content"][0]["tool_use_id"], fits);
    }
}

#[test]
fn what_is_not_said_is_not_sent() {
    check(vec![], json!([]));
    check(vec![Message::user(" "), Message::assistant(""), Message::new(Role::User, vec![])], json!([]));
    check(
        vec![Message::new(
            Role::User,
            vec![ContentBlock::thinking("hm"), call("c", "{}"), ContentBlock::text("Hi")],
        )],
        json!([{ "role": "user", "content": [{ "type": "text", "text": "Hi" }] }]),
    );
}
