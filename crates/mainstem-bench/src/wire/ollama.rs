//! Ollama's [lines], about 150 bytes each.
//!
//! [lines]: https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion

use std::borrow::Cow;

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Part, TOOL, chunk, stamp};

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    message: Message<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
}

pub(super) fn text(data: &str) -> Result<Option<Cow<'_, str>>> {
    let line: Line<'_> = serde_json::from_str(data)?;
    Ok(line.message.content)
}

pub(super) fn body(task: &str) -> Value {
    json!({ "model": "scripted", "messages": [{ "role": "user", "content": task }], "stream": true })
}

pub(super) fn write(part: &Part<'_>, out: &mut Vec<u8>) {
    match part {
        Part::Begin { .. } => {}
        Part::Text { index, sent } => {
            line(
                out,
                *index,
                &format!(r#"{{"role":"assistant","content":"{}"}}"#, stamp(*sent)),
                r#""done":false"#,
            );
        }
        Part::Call { index, agent, task } => {
            let function = json!({ "name": TOOL, "arguments": { "agent_id": agent, "task": task } });
            let message =
                json!({ "role": "assistant", "content": "", "tool_calls": [{ "function": function }] });
            line(out, *index, &message.to_string(), r#""done":false"#);
        }
        Part::End { .. } => {
            let counts = r#""done_reason":"stop","done":true,"total_duration":4883583458,"load_duration":1334875,"prompt_eval_count":100,"prompt_eval_duration":342546000,"eval_count":100,"eval_duration":4535599000"#;
            line(out, 0, r#"{"role":"assistant","content":""}"#, counts);
        }
    }
}

fn line(out: &mut Vec<u8>, index: u32, message: &str, rest: &str) {
    let created = format!("2026-11-25T10:00:00.{:06}Z", index % 1_000_000);
    chunk(
        out,
        &format!("{{\"model\":\"scripted\",\"created_at\":\"{created}\",\"message\":{message},{rest}}}\n"),
    );
}
