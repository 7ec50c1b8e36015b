//! OpenAI's [chunks], about 250 bytes each.
//!
//! [chunks]: https://platform.openai.com/docs/api-reference/chat/streaming

use std::borrow::Cow;

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Part, TOOL, chunk, noise, stamp};

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
}

pub(super) fn text(data: &str) -> Result<Option<Cow<'_, str>>> {
    let chunk: Chunk<'_> = serde_json::from_str(data)?;
    Ok(chunk.choices.into_iter().find_map(|choice| choice.delta.content))
}

pub(super) fn body(task: &str) -> Value {
    json!({
        "model": "scripted",
        "messages": [{ "role": "user", "content": task }],
        "stream": true,
        "stream_options": { "include_usage": true, "include_obfuscation": false },
    })
}

pub(super) fn write(part: &Part<'_>, is_obfuscated: bool, out: &mut Vec<u8>) {
    let noise =
        |index| if is_obfuscated { format!(r#","obfuscation":"{}""#, noise(index)) } else { String::new() };
    match part {
        Part::Begin { .. } => {
            choice(out, r#"{"role":"assistant","content":"","refusal":null}"#, "null", &noise(u32::MAX));
        }
        Part::Text { index, sent } => {
            choice(out, &format!(r#"{{"content":"{}"}}"#, stamp(*sent)), "null", &noise(*index));
        }
        Part::Call { index, agent, task } => {
            let arguments = json!({ "agent_id": agent, "task": task }).to_string();
            let function = json!({ "name": TOOL, "arguments": arguments });
            let call = json!({ "index": index, "id": format!("call_{index}"), "type": "function", "function": function });
            choice(out, &json!({ "tool_calls": [call] }).to_string(), "null", &noise(*index));
        }
        Part::End { text } => {
            choice(out, "{}", if *text { r#""stop""# } else { r#""tool_calls""# }, &noise(0));
            let usage = r#"{"prompt_tokens":100,"completion_tokens":100,"total_tokens":200}"#;
            event(out, &format!(r#"{{{ENVELOPE},"choices":[],"usage":{usage}{}}}"#, noise(1)));
            event(out, "[DONE]");
        }
    }
}

const ENVELOPE: &str = r#""id":"chatcmpl-Bx81kTz1QnNQz5JpN0wR","object":"chat.completion.chunk","created":1763700000,"model":"scripted","system_fingerprint":"fp_44709d6fcb""#;

fn choice(out: &mut Vec<u8>, delta: &str, finish_reason: &str, noise: &str) {
    let choice = format!(r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish_reason}}}"#);
    event(out, &format!(r#"{{{ENVELOPE},"choices":[{choice}]{noise}}}"#));
}

fn event(out: &mut Vec<u8>, data: &str) {
    chunk(out, &format!("data: {data}\n\n"));
}
