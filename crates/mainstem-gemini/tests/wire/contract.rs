//! The contract of providers.

use mainstem_gemini::GenerateContent;
use mainstem_message::{ContentBlock, Message, Role, ToolResult, ToolState};
use mainstem_testing::provider::Sample;

pub(crate) const TEXT: &str =
    r#"{"candidates": [{"content": {"parts": [{"text": "Hi"}],"role": "model"},"index": 0}]}"#;
pub(crate) const CALL: &str = r#"{"candidates": [{"content": {"parts": [{"functionCall": {"name": "f","args": {"a": 1}}}],"role": "model"},"index": 0}]}"#;
pub(crate) const STOP: &str = r#"{"candidates": [{"content": {"parts": [{"text": ""}],"role": "model"},"finishReason": "STOP","index": 0}]}"#;
const COUNTED: &str = r#"{"candidates": [{"finishReason": "STOP"}],"usageMetadata": {"promptTokenCount": 3,"candidatesTokenCount": 1}}"#;
const WHOLE: &str =
    r#"{"candidates": [{"content": {"parts": [{"text": "Hi"}],"role": "model"},"finishReason": "STOP"}]}"#;

/// Returns a result without its call: videos have a form.
fn result() -> Message {
    let result = ToolResult {
        tool_call_id: "nowhere".into(),
        name: "f".into(),
        content: vec![],
        state: ToolState::Success,
    };
    Message::new(Role::Tool, vec![ContentBlock::ToolResult(result)])
}

fn sample() -> Sample {
    Sample {
        text: TEXT,
        end: &[STOP],
        counted_end: &[COUNTED],
        call: (&[CALL], r#"+f {"a": 1} ."#),
        whole: (WHOLE, "Hi |stop"),
        missing: "it has no candidates",
        error: r#"{"error": {"code": 500,"message": "$","status": "INTERNAL"}}"#,
        without_form: result,
        recorded: &[
            include_bytes!("../fixtures/text.body"),
            include_bytes!("../fixtures/thoughts.body"),
            include_bytes!("../fixtures/call.body"),
            include_bytes!("../fixtures/vertex_calls.body"),
            include_bytes!("../fixtures/blocked.body"),
            include_bytes!("../fixtures/malformed_call.body"),
        ],
        endings: &[r#""finishReason": "STOP""#, r#""blockReason""#],
        pieces: &[
            "{\"candidates\":[",
            "{\"content\":{\"parts\":[",
            "]}}",
            "{\"text\":\"a\"}",
            "{\"text\":\"\",\"thoughtSignature\":\"s\"}",
            "{\"functionCall\":{\"name\":\"f\",\"args\":",
            "{\"inlineData\":{}}",
            "\"usageMetadata\":{\"promptTokenCount\":18446744073709551615}",
            "\"promptFeedback\":",
            "\"error\":",
            "\"finishReason\":\"STOP\"",
            "\"finishReason\":\"MALFORMED_FUNCTION_CALL\"",
            "\"thought\":true",
            "\\ud800",
            "é",
        ],
    }
}

mainstem_testing::provider_contract!(GenerateContent, sample());
