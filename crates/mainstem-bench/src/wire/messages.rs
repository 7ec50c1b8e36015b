//! Anthropic's [events](https://platform.claude.com/docs/en/build-with-claude/streaming), about 150
//! bytes each.

use std::borrow::Cow;

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{PING, Part, TOOL, chunk, stamp};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

pub(super) fn text(data: &str) -> Result<Option<Cow<'_, str>>> {
    let event: Event<'_> = serde_json::from_str(data)?;
    Ok(event.delta.and_then(|delta| delta.text))
}

pub(super) fn body(task: &str) -> Value {
    json!({
        "model": "scripted",
        "max_tokens": 1024,
        "messages": [{ "role": "user", "content": task }],
        "stream": true,
    })
}

pub(super) fn write(part: &Part<'_>, out: &mut Vec<u8>) {
    match part {
        Part::Begin { text } => {
            let usage = json!({
                "input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                "output_tokens": 1, "service_tier": "standard",
            });
            let message = json!({
                "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant",
                "model": "scripted", "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
            });
            event(out, "message_start", &json!({ "type": "message_start", "message": message }).to_string());
            if *text {
                start(out, 0, &json!({ "type": "text", "text": "" }));
            }
            ping(out);
        }
        Part::Text { index, sent } => {
            let data = format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{}"}}}}"#,
                stamp(*sent)
            );
            event(out, "content_block_delta", &data);
            if index % PING == PING - 1 {
                ping(out);
            }
        }
        Part::Call { index, agent, task } => {
            let id = format!("toolu_{index}");
            start(out, *index, &json!({ "type": "tool_use", "id": id, "name": TOOL, "input": {} }));
            let input = json!({ "agent_id": agent, "task": task }).to_string();
            let delta = json!({ "type": "input_json_delta", "partial_json": input });
            let data = json!({ "type": "content_block_delta", "index": index, "delta": delta });
            event(out, "content_block_delta", &data.to_string());
            stop(out, *index);
        }
        Part::End { text } => {
            if *text {
                stop(out, 0);
            }
            let reason = if *text { "end_turn" } else { "tool_use" };
            let delta = json!({ "stop_reason": reason, "stop_sequence": null });
            let data = json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 100 } });
            event(out, "message_delta", &data.to_string());
            event(out, "message_stop", r#"{"type":"message_stop"}"#);
        }
    }
}

fn start(out: &mut Vec<u8>, index: u32, block: &Value) {
    let data = json!({ "type": "content_block_start", "index": index, "content_block": block });
    event(out, "content_block_start", &data.to_string());
}

fn stop(out: &mut Vec<u8>, index: u32) {
    event(out, "content_block_stop", &json!({ "type": "content_block_stop", "index": index }).to_string());
}

fn ping(out: &mut Vec<u8>) {
    event(out, "ping", r#"{"type": "ping"}"#);
}

fn event(out: &mut Vec<u8>, name: &str, data: &str) {
    chunk(out, &format!("event: {name}\ndata: {data}\n\n"));
}
