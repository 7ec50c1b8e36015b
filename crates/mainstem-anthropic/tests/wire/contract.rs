//! The contract of providers.

use mainstem_anthropic::Messages;
use mainstem_testing::provider::{Sample, video};

pub(crate) const TEXT: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#;
pub(crate) const END: &str =
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null}}"#;
pub(crate) const STOP: &str = r#"{"type":"message_stop"}"#;
const COUNTED: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":3,"output_tokens":1}}"#;
const CALL: &str = r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}"#;
const ARGUMENTS: &str = r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#;
const WHOLE: &str =
    r#"{"type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"max_tokens"}"#;

fn sample() -> Sample {
    Sample {
        text: TEXT,
        end: &[END, STOP],
        counted_end: &[COUNTED, STOP],
        call: (&[CALL, ARGUMENTS], r#"+f {"a":"#),
        whole: (WHOLE, "Hi ; |length"),
        missing: "it has no content",
        error: r#"{"type":"error","error":{"type":"api_error","message":"$"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#,
        without_form: video,
        recorded: &[
            include_bytes!("../fixtures/text.body"),
            include_bytes!("../fixtures/tool_use.body"),
            include_bytes!("../fixtures/thinking.body"),
            include_bytes!("../fixtures/web_search.body"),
            include_bytes!("../fixtures/error.body"),
            include_bytes!("../fixtures/parallel.body"),
        ],
        endings: &[
            r#""stop_reason":"tool_use""#,
            r#""stop_reason":"end_turn""#,
            r#""stop_reason": "end_turn""#,
        ],
        pieces: &[
            "\"type\":",
            "\"text_delta\"",
            "\"content_block_start\"",
            "\"content_block_delta\"",
            "\"message_delta\"",
            "\"tool_use\"",
            "\"content_block\":",
            "\"delta\":",
            "\"index\":0",
            "\"input\":",
            "\"usage\":",
            "\\ud800",
            "é",
        ],
    }
}

mainstem_testing::provider_contract!(Messages, sample());
