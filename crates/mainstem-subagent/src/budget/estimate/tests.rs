//! What an estimate counts.

use std::sync::Arc;

use mainstem_message::{ContentBlock, Message, Role, ToolCall, ToolResult, ToolSpec, ToolState, Usage};
use mainstem_model::{ModelOptions, ModelRequest, ToolChoice};
use serde_json::json;

use super::of;

fn check(
    system: Option<&str>,
    content: Vec<ContentBlock>,
    tools: Vec<ToolSpec>,
    most: Option<u32>,
    expected: Usage,
) {
    let mut options = ModelOptions::new();
    options.max_output_tokens = most;
    let request = ModelRequest {
        agent: "a".into(),
        cache_key: None,
        system: system.map(Into::into),
        messages: vec![Arc::new(Message::new(Role::User, content))],
        tools: tools.into(),
        tool_choice: ToolChoice::Auto,
        options: Arc::new(options),
        ..ModelRequest::default()
    };
    assert_eq!(of(&request), expected);
}

#[test]
fn everything_that_is_sent_counts() {
    let text = |bytes| ContentBlock::text("x".repeat(bytes));
    check(None, vec![], vec![], None, Usage::new(0, 4_096));
    check(Some("12345"), vec![], vec![], Some(7), Usage::new(2, 7));
    check(None, vec![text(40), ContentBlock::thinking("1234")], vec![], Some(0), Usage::new(11, 0));
    let call = ToolCall::new("ignored", "four", "{\"a\":10}");
    let (content, name) = (vec![text(8)], "four".to_owned());
    let result = ToolResult { tool_call_id: "ignored".into(), name, content, state: ToolState::Success };
    let both = vec![ContentBlock::ToolCall(call), ContentBlock::ToolResult(result)];
    check(None, both, vec![], Some(0), Usage::new(6, 0));
    let schema = json!({ "type": "object", "required": ["a", "b"], "n": 12 });
    let written = schema.to_string().len() as u64;
    let counted = |usage: Usage| usage.input_tokens.abs_diff((written + 8) / 4);
    let tool = ToolSpec::new("four", "desc", schema);
    let mut options = ModelOptions::new();
    options.max_output_tokens = Some(0);
    let request = ModelRequest {
        agent: "a".into(),
        cache_key: None,
        system: None,
        messages: vec![],
        tools: vec![tool].into(),
        tool_choice: ToolChoice::Auto,
        options: Arc::new(options),
        ..ModelRequest::default()
    };
    assert!(counted(of(&request)) <= 2, "{:?} for {written} bytes", of(&request));
}
