//! The wire: [chat completion
//! chunks](https://platform.openai.com/docs/api-reference/chat/streaming) as server-sent events,
//! each in an HTTP chunk of its own (RFC 9112, section 7.1), about 250 bytes, as OpenAI's servers
//! send them.

use std::{io::Write, time::Duration};

use serde_json::json;

/// One chunk of an answer.
pub(super) enum Chunk<'a> {
    Role,
    /// The text is the time of sending.
    Text {
        sent: Duration,
    },
    /// A whole call of `agent_spawn`.
    Call {
        index: u32,
        agent: &'a str,
        task: &'a str,
    },
    /// The end, with the usage.
    End {
        finish_reason: &'a str,
    },
}

impl Chunk<'_> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Role => choice(out, r#"{"role":"assistant","content":"","refusal":null}"#, "null"),
            Self::Text { sent } => {
                let sent = u64::try_from(sent.as_nanos()).unwrap_or_default();
                choice(out, &format!(r#"{{"content":"{sent:019} "}}"#), "null");
            }
            Self::Call { index, agent, task } => {
                let arguments = json!({ "agent_id": agent, "task": task }).to_string();
                let function = json!({ "name": "agent_spawn", "arguments": arguments });
                let call = json!({ "index": index, "id": format!("call_{index}"), "type": "function", "function": function });
                choice(out, &json!({ "tool_calls": [call] }).to_string(), "null");
            }
            Self::End { finish_reason } => {
                choice(out, "{}", &format!("{finish_reason:?}"));
                let usage = r#"{"prompt_tokens":100,"completion_tokens":100,"total_tokens":200}"#;
                event(out, &format!(r#"{{{ENVELOPE},"choices":[],"usage":{usage}}}"#));
            }
        }
    }
}

const ENVELOPE: &str = r#""id":"chatcmpl-Bx81kTz1QnNQz5JpN0wR","object":"chat.completion.chunk","created":1763700000,"model":"scripted","system_fingerprint":"fp_44709d6fcb""#;

fn choice(out: &mut Vec<u8>, delta: &str, finish_reason: &str) {
    let choice = format!(r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish_reason}}}"#);
    event(out, &format!(r#"{{{ENVELOPE},"choices":[{choice}]}}"#));
}

fn event(out: &mut Vec<u8>, data: &str) {
    // Writing to memory does not fail.
    let _ = write!(out, "{:x}\r\ndata: {data}\n\n\r\n", "data: \n\n".len() + data.len());
}

/// The end of the events, and of the response.
pub(super) fn done(out: &mut Vec<u8>) {
    event(out, "[DONE]");
    out.extend_from_slice(b"0\r\n\r\n");
}
