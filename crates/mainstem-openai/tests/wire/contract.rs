//! The contract of providers, for chat completions.

pub(crate) mod responses;

use mainstem_openai::ChatCompletions;
use mainstem_testing::provider::{Sample, video};

pub(crate) const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}"#;
pub(crate) const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
const CALL: &str = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":"}}]}}]}"#;
const WHOLE: &str =
    r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}"#;

fn sample() -> Sample {
    Sample {
        text: TEXT,
        end: &[STOP, "[DONE]"],
        counted_end: &[STOP, USAGE, "[DONE]"],
        call: (&[CALL], r#"+f {"a":"#),
        whole: (WHOLE, "Hi |stop"),
        missing: "it has no choices",
        error: r#"{"error":{"message":"$","type":"server_error","param":null,"code":null}}"#,
        without_form: video,
        recorded: &[
            include_bytes!("../fixtures/chat_stream.body"),
            include_bytes!("../fixtures/chat_after_tool.body"),
            include_bytes!("../fixtures/chat_after_tool_auto.body"),
            include_bytes!("../fixtures/chat_auto_first.body"),
            include_bytes!("../fixtures/chat_parallel.body"),
            include_bytes!("../fixtures/chat_stream_tools_required.body"),
            include_bytes!("../fixtures/chat_stream_tools_fewshot.body"),
            include_bytes!("../fixtures/steered_first.body"),
        ],
        endings: &[
            r#""finish_reason":"stop""#,
            r#""finish_reason":"tool_calls""#,
            r#""finish_reason":"length""#,
        ],
        pieces: &[
            "\"choices\":",
            "\"delta\":",
            "\"content\":",
            "\"tool_calls\":",
            "\"index\":0",
            "\"id\":\"a\"",
            "\"function\":",
            "\"arguments\":",
            "\"usage\":",
            "\"error\":",
            "\"finish_reason\":\"stop\"",
            "\\ud800",
            "é",
        ],
    }
}

mainstem_testing::provider_contract!(ChatCompletions, sample());
