//! What each provider of the facade's table sends, and where: path, credentials and names of
//! fields.

use std::{fmt::Write as _, sync::Arc};

use futures_util::StreamExt;
use mainstem::{
    message::{ContentBlock, Message, ToolCall, ToolResult, ToolState},
    model::{ErrorKind, ModelError, ModelOptions, ModelRegistry, ModelRequest, ResolveError},
    prelude::*,
    provider::{PROVIDERS, Provider, Setup},
};
use mainstem_testing::raw::Server;
use serde_json::Value;

/// Returns a request after a call of a tool, with the options whose names differ.
fn request() -> ModelRequest {
    let thinking = ContentBlock::thinking("Hm.");
    let call = ToolCall::new("c1", "look", "{}");
    let called = Message::new(Role::Assistant, vec![thinking, ContentBlock::ToolCall(call)]);
    let (tool_call_id, name) = ("c1".into(), "look".to_owned());
    let content = vec![ContentBlock::text("42")];
    let result = ToolResult { tool_call_id, name, content, state: ToolState::Success };
    let messages =
        [Message::user("go"), called, Message::new(Role::Tool, vec![ContentBlock::ToolResult(result)])];
    let mut options = ModelOptions::new();
    (options.max_output_tokens, options.seed) = (Some(4_096), Some(7));
    (options.effort, options.thinking_budget) = (Some("low".to_owned()), Some(2_048));
    let (messages, options) = (messages.into_iter().map(Arc::new).collect(), Arc::new(options));
    ModelRequest { system: Some("Be brief.".into()), messages, options, ..ModelRequest::default() }
}

/// Returns the request that a provider sends to a server at this path.
async fn sent(row: &Provider, path: &str) -> (String, Value) {
    let mut server = Server::start(vec![vec![]]).await;
    let var = |name: &str| match name {
        name if name == row.base_url => Some(format!("{}{path}", server.url())),
        name if name == row.key => Some("k-1234".to_owned()),
        _ => None,
    };
    let model = row.bare_model("m", &Setup::new(&var)).unwrap();
    assert!(model.stream(request()).next().await.unwrap().is_err());
    let request = server.request().await;
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), serde_json::from_str(body).unwrap())
}

/// Returns path and credentials.
fn addressed(head: &str) -> String {
    let mut lines = head.lines();
    let path = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
    let key = lines.find(|line| line.contains("k-1234")).unwrap_or("no key");
    format!("{path} {key}")
}

#[tokio::test]
async fn each_provider_has_its_paths_and_credentials() {
    let mut text = String::new();
    for row in PROVIDERS {
        let (without, _) = sent(row, "").await;
        let (below, _) = sent(row, "/proxy/v1").await;
        let traced = row.bare_model("m", &Setup::new(&|_| Some("http://h".to_owned())));
        let traced = traced.unwrap().provider().unwrap().to_owned();
        let below = addressed(&below);
        let below = below.split(' ').next().unwrap();
        writeln!(text, "{} ({traced}): {}, {below}", row.name, addressed(&without)).unwrap();
    }
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn each_provider_has_its_names_of_fields() {
    let mut text = String::new();
    for row in PROVIDERS {
        let (_, body) = sent(row, "").await;
        let mut fields: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        let reasons = body.to_string().contains("\"reasoning_content\":\"Hm.\"");
        let reasoning = if reasons { ", with its reasoning" } else { "" };
        writeln!(text, "{}: {}{reasoning}", row.name, fields.join(" ")).unwrap();
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_provider_is_set_up_by_a_key_or_an_address() {
    let missing = |row: &Provider, set: &[&str]| {
        let var = |name: &str| set.contains(&name).then(|| "http://h".to_owned());
        row.bare_model("m", &Setup::new(&var)).err().map(|error| error.to_string())
    };
    let mut text = String::new();
    for row in PROVIDERS {
        let by: Vec<_> = row.set_up_by().collect();
        let default = row.default_name().unwrap_or_else(|| "no default".to_owned());
        let without = missing(row, &[]).unwrap_or_else(|| "needs nothing".to_owned());
        writeln!(text, "{}: {} by {}; {without}", row.name, default, by.join(" or ")).unwrap();
        assert_eq!(missing(row, &[row.base_url]), None, "{}", row.name);
        assert!(missing(row, &by[..1]).is_none(), "{} by {}", row.name, by[0]);
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_bare_name_finds_its_provider() {
    let registry = PROVIDERS.iter().fold(ModelRegistry::new(), |registry, row| {
        let shown = |model: &str| ModelError::new(ErrorKind::Auth, format!("{}:{model}", row.name));
        registry
            .with_provider(row.name, move |model| Err(shown(model)))
            .with_families(row.name, row.families.iter().copied())
    });
    let found = |name: &str| match registry.resolve(name).err().unwrap() {
        ResolveError::Provider { source, .. } => source.to_string(),
        _ => "none".to_owned(),
    };
    let names = [
        "gpt-4o",
        "gpt-5.2",
        "o3-mini",
        "gpt-5.2-codex",
        "claude-haiku-4-5",
        "gemini-2.5-pro",
        "gemma-3-27b-it",
        "gemma3:4b",
        "qwen3:8b",
        "llama3.2",
        "gpt-oss:20b",
        "deepseek-r1:7b",
        "deepseek-chat",
        "mistral-large-latest",
        "grok-4.5",
        "llama-3.3-70b-versatile",
        "anthropic/claude-haiku-4.5",
        "openai/gpt-oss-20b:free",
        "ft:gpt-4o-mini:org::id",
        "gpt",
    ];
    let text = names.map(|name| format!("{name}: {}\n", found(name))).concat();
    insta::assert_snapshot!(text);
}
