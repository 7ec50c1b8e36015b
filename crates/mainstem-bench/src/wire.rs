//! The wires of five vendors, in the form that their servers send: how the scripted server writes
//! an answer, and how the bare client asks for it and reads its text.
//!
//! Each part of an answer is an HTTP chunk of its own (RFC 9112, section 7.1), as at the vendors.

mod chat;
mod gemini;
mod messages;
mod ollama;
mod responses;

use std::{borrow::Cow, io::Write, sync::Arc, time::Duration};

use anyhow::Result;
use mainstem::{
    anthropic::Anthropic,
    gemini::Gemini,
    model::Model,
    ollama::Ollama,
    openai::{OpenAi, OpenAiResponses},
};
use serde_json::Value;

/// A vendor's API.
#[derive(Clone, Copy, Debug, Default, PartialEq, clap::ValueEnum)]
pub(crate) enum Wire {
    /// OpenAI's chat completions.
    #[default]
    Chat,
    /// The same from a server that adds `obfuscation` to each chunk although asked not to.
    Obfuscated,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages, with pings.
    Messages,
    Gemini,
    Ollama,
}

/// A part of an answer.
pub(crate) enum Part<'a> {
    /// The beginning, of an answer with text or with calls.
    Begin { text: bool },
    /// The delta with this number. The text is the time of sending.
    Text { index: u32, sent: Duration },
    /// A whole call of `agent_spawn`.
    Call { index: u32, agent: &'a str, task: &'a str },
    /// The end, with the usage.
    End { text: bool },
}

/// The name of the tool that is called.
const TOOL: &str = "agent_spawn";

/// How often Anthropic's server sends a `ping`, in deltas.
const PING: u32 = 20;

impl Wire {
    pub(crate) const ALL: [Self; 6] =
        [Self::Chat, Self::Obfuscated, Self::Responses, Self::Messages, Self::Gemini, Self::Ollama];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Chat => "chat completions",
            Self::Obfuscated => "chat completions with obfuscation",
            Self::Responses => "responses",
            Self::Messages => "Anthropic",
            Self::Gemini => "Gemini",
            Self::Ollama => "Ollama",
        }
    }

    /// Returns the wire of a request to this path.
    pub(crate) fn of_path(path: &str) -> Self {
        let of_path = |wire: &Self| path.starts_with(wire.path());
        Self::ALL.into_iter().find(of_path).unwrap_or_default()
    }

    /// Returns the path that the bare client posts to.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Obfuscated => "/obfuscated/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
            Self::Gemini => "/v1beta/models/scripted:streamGenerateContent?alt=sse",
            Self::Ollama => "/api/chat",
        }
    }

    /// Returns Mainstem's provider for the server at this root.
    pub(crate) fn model(self, root: &str) -> Result<Arc<dyn Model>> {
        let (name, key) = ("scripted", "a-key-of-the-bench");
        let openai = |below: &str| -> Result<Arc<dyn Model>> {
            Ok(Arc::new(OpenAi::new(name).with_api_key(key).with_base_url(&format!("{root}{below}"))?))
        };
        Ok(match self {
            Self::Chat => openai("/v1")?,
            Self::Obfuscated => openai("/obfuscated/v1")?,
            Self::Responses => {
                let model = OpenAiResponses::new(name).with_api_key(key);
                Arc::new(model.with_base_url(&format!("{root}/v1"))?)
            }
            Self::Messages => Arc::new(Anthropic::new(name).with_api_key(key).with_base_url(root)?),
            Self::Gemini => Arc::new(Gemini::new(name).with_api_key(key).with_base_url(root)?),
            Self::Ollama => Arc::new(Ollama::new(name).with_base_url(root)?),
        })
    }

    /// Returns the body of the bare client's request.
    pub(crate) fn body(self, task: &str) -> Value {
        match self {
            Self::Chat | Self::Obfuscated => chat::body(task),
            Self::Responses => responses::body(task),
            Self::Messages => messages::body(task),
            Self::Gemini => gemini::body(task),
            Self::Ollama => ollama::body(task),
        }
    }

    /// Returns `true` if answers are lines of JSON in place of server-sent events.
    pub(crate) fn is_lines(self) -> bool {
        self == Self::Ollama
    }

    /// Reads the text of a payload, as the bare client does: typed, borrowed, only this field.
    pub(crate) fn text(self, data: &str) -> Result<Option<Cow<'_, str>>> {
        match self {
            Self::Chat | Self::Obfuscated => chat::text(data),
            Self::Responses => responses::text(data),
            Self::Messages => messages::text(data),
            Self::Gemini => gemini::text(data),
            Self::Ollama => ollama::text(data),
        }
    }

    /// Writes a part of an answer.
    pub(crate) fn write(self, part: &Part<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Chat => chat::write(part, false, out),
            Self::Obfuscated => chat::write(part, true, out),
            Self::Responses => responses::write(part, out),
            Self::Messages => messages::write(part, out),
            Self::Gemini => gemini::write(part, out),
            Self::Ollama => ollama::write(part, out),
        }
    }
}

/// Writes the last chunk of a body.
pub(crate) fn finish(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}

/// Writes an HTTP chunk.
fn chunk(out: &mut Vec<u8>, content: &str) {
    // Writing to memory does not fail.
    let _ = write!(out, "{:x}\r\n{content}\r\n", content.len());
}

/// Writes a time of sending, as long as a usual token.
fn stamp(sent: Duration) -> String {
    format!("{:019} ", u64::try_from(sent.as_nanos()).unwrap_or_default())
}

/// Returns random letters, of a random length below 16, as `obfuscation` has them.
fn noise(index: u32) -> String {
    let mut state = u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 40
    };
    let length = 1 + next() % 15;
    (0..length).map(|_| char::from(b'a' + (next() % 26) as u8)).collect()
}
