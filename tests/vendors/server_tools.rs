//! Tools that vendors run themselves: declared, reported, and sent back as they came.

use std::sync::Arc;

use mainstem::{
    model::{Model, ModelOptions},
    prelude::*,
    spec::{Permission, ServerTool},
};
use mainstem_testing::{
    laws,
    raw::{Server, events, named_events},
    render,
};
use serde_json::{Map, Value, json};

use crate::api::vendors;

/// The answers of one API: to the first request with a search and a call of our tool, to the second
/// with a text.
struct Answers {
    provider: &'static str,
    searching: Vec<Value>,
    said: Vec<Value>,
    /// What the first request has of the vendor's tools.
    declared: Vec<Value>,
    /// What the second request has of the search, as it came.
    sent_back: Vec<Value>,
}

fn responses() -> Answers {
    let reasoning = json!({ "id": "rs_1", "type": "reasoning", "encrypted_content": "gAAAA", "summary": [] });
    let search = json!({
        "id": "ws_1", "type": "web_search_call", "status": "completed",
        "action": { "type": "search", "query": "weather" },
    });
    let call = json!({ "id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}" });
    let text =
        json!({ "id": "msg_1", "type": "message", "content": [{ "type": "output_text", "text": "Rain." }] });
    let done = |index: u64, item: &Value| json!({ "type": "response.output_item.done", "output_index": index, "item": item });
    let completed = json!({ "type": "response.completed", "response": { "status": "completed" } });
    Answers {
        provider: "responses",
        searching: vec![done(0, &reasoning), done(1, &search), done(2, &call), completed.clone()],
        said: vec![done(0, &text), completed],
        declared: vec![
            json!({ "type": "web_search" }),
            json!({ "type": "code_interpreter", "container": { "type": "auto" } }),
        ],
        sent_back: vec![reasoning, search],
    }
}

fn anthropic() -> Answers {
    let start = |index: u64, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let delta =
        |index: u64, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let stop = |index: u64| json!({ "type": "content_block_stop", "index": index });
    let ending = |reason: &str| {
        [
            json!({ "type": "message_delta", "delta": { "stop_reason": reason } }),
            json!({ "type": "message_stop" }),
        ]
    };
    let begin = json!({ "type": "message_start", "message": { "content": [] } });
    let input = json!({ "type": "input_json_delta", "partial_json": "{\"query\":\"weather\"}" });
    let search = |input: Value| json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": input });
    let found = json!({
        "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": [{ "type": "web_search_result", "title": "Weather", "url": "https://weather.example", "encrypted_content": "E" }],
    });
    let call = json!({ "type": "tool_use", "id": "toolu_1", "name": "look", "input": {} });
    let mut searching = vec![begin.clone(), start(0, search(json!({}))), delta(0, input), stop(0)];
    searching.extend([start(1, found.clone()), stop(1), start(2, call), stop(2)]);
    searching.extend(ending("tool_use"));
    let mut said = vec![begin, start(0, json!({ "type": "text", "text": "Rain." })), stop(0)];
    said.extend(ending("end_turn"));
    Answers {
        provider: "anthropic",
        searching,
        said,
        declared: vec![
            json!({ "type": "web_search_20250305", "name": "web_search" }),
            json!({ "type": "code_execution_20250825", "name": "code_execution" }),
        ],
        sent_back: vec![search(json!({ "query": "weather" })), found],
    }
}

fn gemini() -> Answers {
    let chunk = |parts: &[Value], finish: Option<&str>| json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "finishReason": finish }] });
    let search = json!({
        "toolCall": { "toolType": "GOOGLE_SEARCH_WEB", "args": { "queries": ["weather"] }, "id": "t1" },
        "thoughtSignature": "S",
    });
    let found = json!({
        "toolResponse": { "toolType": "GOOGLE_SEARCH_WEB", "response": { "search_suggestions": "…" }, "id": "t1" },
    });
    let call = json!({ "functionCall": { "id": "f1", "name": "look", "args": {} } });
    Answers {
        provider: "gemini",
        searching: vec![chunk(&[search.clone(), found.clone()], None), chunk(&[call], Some("STOP"))],
        said: vec![chunk(&[json!({ "text": "Rain." })], Some("STOP"))],
        declared: vec![json!({ "googleSearch": {} }), json!({ "codeExecution": {} })],
        sent_back: vec![search, found],
    }
}

async fn harness(answers: &Answers, server: &Server, rules: Option<&str>) -> Harness {
    let all = vendors().await;
    let vendor = all.into_iter().find(|vendor| vendor.name() == answers.provider).unwrap();
    let model: Arc<dyn Model> = vendor.model(&server.url());
    let tool = |_, _: Map<String, Value>| async { Ok::<_, ToolError>("42") };
    let mut spec =
        AgentSpec::new("lead", "Leads").with_server_tools([ServerTool::WebSearch, ServerTool::CodeExecution]);
    if let Some(pattern) = rules {
        spec.permissions = vec![(pattern.to_owned(), Permission::Deny)];
    }
    let builder = Harness::builder("main", model).with_tool(tool_fn("look", "Looks", tool)).with_max_depth(0);
    builder.with_subagent(spec).with_agent("lead").build().unwrap()
}

fn body(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// Returns `true` if a JSON value is somewhere within another, perhaps with further fields.
fn contains(within: &Value, wanted: &Value) -> bool {
    let has = |(name, value)| within.get::<&String>(name) == Some(value);
    within == wanted
        || wanted.as_object().is_some_and(|wanted| wanted.iter().all(has))
        || match within {
            Value::Array(values) => values.iter().any(|value| contains(value, wanted)),
            Value::Object(fields) => fields.values().any(|value| contains(value, wanted)),
            _ => false,
        }
}

async fn start(answers: &Answers) -> Server {
    let script = |payloads: &[Value]| {
        let payloads: Vec<_> = payloads.iter().map(Value::to_string).collect();
        let payloads: Vec<_> = payloads.iter().map(String::as_str).collect();
        if payloads[0].contains("\"candidates\"") { events(&payloads) } else { named_events(&payloads) }
    };
    Server::start(vec![script(&answers.searching), script(&answers.said)]).await
}

#[tokio::test]
async fn a_search_of_the_vendor_is_reported_and_sent_back() {
    for answers in [responses(), anthropic(), gemini()] {
        let mut server = start(&answers).await;
        let seen: Vec<_> =
            harness(&answers, &server, None).await.stream_events("Will it rain?").collect().await;
        let text = render(&seen);
        laws(&seen).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert!(text.contains("AGENT_RESULT \"Rain.\""), "{text}");
        let reported: Vec<_> = seen
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::Custom { name, value } if name == "server_tool" => Some(value),
                _ => None,
            })
            .collect();
        assert_eq!(reported.len(), 1, "{text}");
        assert!(reported[0]["tool"].as_str().unwrap().contains("search"), "{}", reported[0]);
        assert!(reported[0]["input"].to_string().contains("weather"), "{}", reported[0]);

        let (first, second) = (body(&server.request().await), body(&server.request().await));
        for tool in &answers.declared {
            assert!(contains(&first["tools"], tool), "{}: {tool} in {first:#}", answers.provider);
        }
        for part in &answers.sent_back {
            assert!(
                !contains(&first, part) && contains(&second, part),
                "{}: {part} in {second:#}",
                answers.provider
            );
        }
    }
}

#[tokio::test]
async fn a_denied_search_is_not_offered() {
    for answers in [responses(), anthropic(), gemini()] {
        let mut server = start(&answers).await;
        // A rule about some of its calls is about all: what they ask for can't be checked.
        let pattern = if answers.provider == "gemini" { "web_search(query: *acme*)" } else { "web_search" };
        let harness = harness(&answers, &server, Some(pattern)).await;
        let _: Vec<_> = harness.stream_events("Will it rain?").collect().await;
        let first = body(&server.request().await);
        assert!(!contains(&first["tools"], &answers.declared[0]), "{first:#}");
        assert!(contains(&first["tools"], &answers.declared[1]), "{first:#}");
    }
}

#[tokio::test]
async fn an_agent_can_have_none_of_the_harness_s_tools() {
    let answers = anthropic();
    let vendor = vendors().await.into_iter().find(|vendor| vendor.name() == answers.provider).unwrap();
    for (own, expected) in [(None, true), (Some(vec![]), false)] {
        let mut server = start(&answers).await;
        let mut options = ModelOptions::new();
        options.server_tools = Some(vec!["web_search".to_owned()]);
        let mut spec = AgentSpec::new("lead", "Leads");
        spec.server_tools = own;
        let harness = Harness::builder("main", vendor.model(&server.url())).with_model_options(options);
        // What changes nothing here needs no approval of changes.
        let harness = harness.with_permissions(RuleSet::new(Effect::Allow).with_changes(Effect::Ask));
        let harness = harness.with_subagent(spec).with_agent("lead").build().unwrap();
        let _: Vec<_> = harness.stream_events("go").take(3).collect().await;
        let first = body(&server.request().await);
        assert_eq!(contains(&first["tools"], &answers.declared[0]), expected, "{first:#}");
    }
}

#[tokio::test]
async fn an_api_without_the_tool_says_so() {
    for vendor in vendors().await {
        if ["responses", "xai", "anthropic", "gemini"].contains(&vendor.name()) {
            continue;
        }
        let server = Server::start(vec![]).await;
        let spec = AgentSpec::new("lead", "Leads").with_server_tools([ServerTool::WebSearch]);
        let harness = Harness::builder("main", vendor.model(&server.url()));
        let harness = harness.with_subagent(spec).with_agent("lead").build().unwrap();
        let seen: Vec<_> = harness.stream_events("go").collect().await;
        let text = render(&seen);
        let why = "has no server tool \"web_search\"; this API has none";
        assert!(text.contains(why) && text.contains("(unsupported: "), "{}: {text}", vendor.name());
    }
}
