//! The contract of providers, for responses.

use mainstem_openai::Responses;
use mainstem_testing::provider::{Sample, video};

pub(crate) const TEXT: &str = r#"{"type":"response.output_text.delta","output_index":0,"delta":"Hi"}"#;
pub(crate) const COMPLETED: &str = r#"{"type":"response.completed","response":{"status":"completed"}}"#;
const COUNTED: &str = r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":3,"output_tokens":1}}}"#;
const CALL: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f","arguments":""}}"#;
const ARGUMENTS: &str =
    r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\":"}"#;
pub(crate) const WHOLE: &str = r#"{"object":"response","status":"completed","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}"#;

fn sample() -> Sample {
    Sample {
        text: TEXT,
        end: &[COMPLETED],
        counted_end: &[COUNTED],
        call: (&[CALL, ARGUMENTS], r#"+f {"a":"#),
        whole: (WHOLE, "Hi ; |stop"),
        missing: "it has no output",
        error: r#"{"error":{"message":"$","type":"server_error","param":null,"code":null}}"#,
        without_form: video,
        recorded: &[
            include_bytes!("../../fixtures/responses_text.body"),
            include_bytes!("../../fixtures/responses_reasoning_tools.body"),
            include_bytes!("../../fixtures/responses_refusal.body"),
            include_bytes!("../../fixtures/responses_incomplete.body"),
            include_bytes!("../../fixtures/responses_failed.body"),
        ],
        endings: &[r#""type":"response.completed""#, r#""type":"response.incomplete""#],
        pieces: &[
            "{",
            "}",
            "[",
            "]",
            "\"",
            ",",
            "null",
            "-1",
            "\"type\":\"response.output_text.delta\"",
            "\"type\":\"response.output_item.added\"",
            "\"type\":\"response.output_item.done\"",
            "\"type\":\"response.completed\"",
            "\"type\":\"error\"",
            "\"type\":\"response.function_call_arguments.delta\"",
            "\"output_index\":18446744073709551615",
            "\"delta\":\"a\"",
            "\"item\":{\"type\":\"message\"}",
            "\"item\":{\"type\":\"function_call\"}",
            "\"item\":{\"type\":\"reasoning\",\"encrypted_content\":\"e\"}",
            "\"response\":{}",
            "\"response\":{\"output\":[{}]}",
            "\"error\":1",
            "\\ud800",
            "é",
        ],
    }
}

mainstem_testing::provider_contract!(Responses, sample());
