//! The contract of providers.

use mainstem_ollama::Chat;
use mainstem_testing::provider::{Sample, video};

pub(crate) const TEXT: &str = r#"{"model":"qwen3","created_at":"2025-10-26T17:15:24.097767Z","message":{"role":"assistant","content":"Hi"},"done":false}"#;
pub(crate) const DONE: &str = r#"{"model":"qwen3","created_at":"2025-10-26T17:15:24.166576Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}"#;
const COUNTED: &str =
    r#"{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":1}"#;
const CALL: &str =
    r#"{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"city":"Zürich"}}}]},"done":false}"#;
pub(crate) const WHOLE: &str =
    r#"{"model":"qwen3","message":{"role":"assistant","content":"Hi"},"done":true}"#;

fn sample() -> Sample {
    Sample {
        text: TEXT,
        end: &[DONE],
        counted_end: &[COUNTED],
        call: (&[CALL], r#"+f {"city":"Zürich"} ."#),
        whole: (WHOLE, "Hi |stop"),
        missing: "it has no message",
        error: r#"{"error":"$"}"#,
        without_form: video,
        recorded: &[
            include_bytes!("../fixtures/chat_stream.body"),
            include_bytes!("../fixtures/chat_stream_tools.body"),
            include_bytes!("../fixtures/chat_stream_thinking.body"),
            include_bytes!("../fixtures/chat_stream_parallel.body"),
            include_bytes!("../fixtures/chat_stream_error.body"),
        ],
        endings: &[r#""done":true"#],
        pieces: &[
            "true",
            "\"message\":",
            "\"content\":",
            "\"thinking\":",
            "\"tool_calls\":",
            "\"id\":\"a\"",
            "\"function\":",
            "\"arguments\":",
            "\"eval_count\":",
            "\"error\":",
            "\"done\":true",
            "\\ud800",
            "é",
        ],
    }
}

mainstem_testing::provider_contract!(Chat, sample());
