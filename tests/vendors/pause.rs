//! A turn that Anthropic pauses goes on with what its own tools have done.

use futures_util::StreamExt;
use mainstem::{anthropic::Anthropic, prelude::*};
use mainstem_testing::{
    laws,
    raw::{Server, named_events},
    render,
};
use serde_json::{Value, json};

/// A search whose turn is paused, as the vendor documents it.
const PAUSED: [&str; 11] = [
    r#"{"type":"message_start","message":{"content":[],"usage":{"input_tokens":20,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I search."}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"X","url":"https://x.example","encrypted_content":"EqgfCioIARgB"}]}}"#,
    r#"{"type":"content_block_stop","index":2}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"pause_turn","stop_sequence":null},"usage":{"output_tokens":9}}"#,
    r#"{"type":"message_stop"}"#,
];

/// The rest of the answer.
const ENDED: [&str; 6] = [
    r#"{"type":"message_start","message":{"content":[],"usage":{"input_tokens":40,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"X it is."}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}"#,
    r#"{"type":"message_stop"}"#,
];

#[tokio::test]
async fn a_turn_that_is_paused_goes_on_with_the_vendors_own_blocks() {
    let mut server = Server::start(vec![named_events(&PAUSED), named_events(&ENDED)]).await;
    let model = Anthropic::new("claude-haiku-4-5").with_api_key("k").with_base_url(&server.url()).unwrap();
    let harness = Harness::builder("main", model).with_max_depth(0).build().unwrap();
    let events: Vec<_> = harness.stream_events("What is x?").collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let replies = events.iter().filter_map(|event| match &event.kind {
        EventKind::AgentResult { result } => Some(result.text()),
        _ => None,
    });
    assert_eq!(replies.collect::<Vec<_>>(), ["X it is."], "{}", render(&events));
    server.request().await;
    let request = server.request().await;
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2, "{body}");
    assert_eq!(messages[1]["role"], "assistant");
    let content = messages[1]["content"].as_array().unwrap();
    let kinds: Vec<_> = content.iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "server_tool_use", "web_search_tool_result"]);
    assert_eq!(content[1]["input"], json!({ "query": "x" }));
    assert_eq!(content[2]["content"][0]["encrypted_content"], "EqgfCioIARgB");
}
