//! OpenAI's [events of a
//! response](https://platform.openai.com/docs/api-reference/responses-streaming), about 250 bytes
//! each, with `obfuscation`, which their servers send unless asked not to.

use std::borrow::Cow;

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Part, TOOL, chunk, noise, stamp};

const ITEM: &str = "msg_67c9fdcf37fc8190ba82116e33fb28c507b8b0ad4e5eb654";

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    delta: Option<Cow<'a, str>>,
}

pub(super) fn text(data: &str) -> Result<Option<Cow<'_, str>>> {
    let event: Event<'_> = serde_json::from_str(data)?;
    Ok(event.delta)
}

pub(super) fn body(task: &str) -> Value {
    json!({ "model": "scripted", "input": [{ "role": "user", "content": task }], "stream": true })
}

pub(super) fn write(part: &Part<'_>, out: &mut Vec<u8>) {
    match part {
        Part::Begin { text } => {
            event(out, "response.created", json!({ "response": response("in_progress") }));
            event(out, "response.in_progress", json!({ "response": response("in_progress") }));
            if *text {
                let item = json!({ "id": ITEM, "type": "message", "status": "in_progress", "role": "assistant", "content": [] });
                event(out, "response.output_item.added", json!({ "output_index": 0, "item": item }));
                let part = json!({ "type": "output_text", "text": "", "annotations": [], "logprobs": [] });
                event(out, "response.content_part.added", of_text(json!({ "part": part })));
            }
        }
        Part::Text { index, sent } => {
            let (stamp, noise) = (stamp(*sent), noise(*index));
            let data = format!(
                r#"{{"type":"response.output_text.delta","sequence_number":{},"item_id":"{ITEM}","output_index":0,"content_index":0,"delta":"{stamp}","logprobs":[],"obfuscation":"{noise}"}}"#,
                index + 4
            );
            chunk(out, &format!("event: response.output_text.delta\ndata: {data}\n\n"));
        }
        Part::Call { index, agent, task } => {
            let arguments = json!({ "agent_id": agent, "task": task }).to_string();
            let id = format!("fc_{index}");
            let item = |arguments: &str, status: &str| {
                let call = format!("call_{index}");
                json!({ "id": id, "type": "function_call", "status": status, "arguments": arguments, "call_id": call, "name": TOOL })
            };
            let added = json!({ "output_index": index, "item": item("", "in_progress") });
            event(out, "response.output_item.added", added);
            let delta = json!({ "item_id": id, "output_index": index, "delta": arguments });
            event(out, "response.function_call_arguments.delta", delta);
            let done = json!({ "item_id": id, "output_index": index, "arguments": arguments });
            event(out, "response.function_call_arguments.done", done);
            let done = json!({ "output_index": index, "item": item(&arguments, "completed") });
            event(out, "response.output_item.done", done);
        }
        Part::End { .. } => event(out, "response.completed", json!({ "response": response("completed") })),
    }
}

fn response(status: &str) -> Value {
    let usage = json!({ "input_tokens": 100, "output_tokens": 100, "total_tokens": 200 });
    json!({
        "id": "resp_67c9fdcecf488190bdd9a0409de3a1ec07b8b0ad4e5eb654", "object": "response",
        "created_at": 1_763_700_000, "status": status, "model": "scripted", "output": [], "usage": usage,
    })
}

fn of_text(mut fields: Value) -> Value {
    fields["item_id"] = ITEM.into();
    fields["output_index"] = 0.into();
    fields["content_index"] = 0.into();
    fields
}

fn event(out: &mut Vec<u8>, name: &str, mut data: Value) {
    data["type"] = name.into();
    data["sequence_number"] = 0.into();
    chunk(out, &format!("event: {name}\ndata: {data}\n\n"));
}
