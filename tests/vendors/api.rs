//! The vendors' APIs as bytes: what each says, in frames that can be played back broken.

use std::sync::Arc;

use mainstem::{
    anthropic::Anthropic,
    gemini::Gemini,
    model::{Model, scripted::Turn},
    ollama::Ollama,
    openai::{OpenAi, OpenAiResponses},
    prelude::*,
};
use mainstem_testing::{
    ModelServer,
    raw::{Step, chunk, head},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A vendor's API.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Vendor {
    OpenAi,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
}

use self::Vendor::{Anthropic as Claude, Gemini as Google, Ollama as Llama, OpenAi as Chat, Responses};

pub(crate) const VENDORS: [Vendor; 5] = [Chat, Responses, Claude, Google, Llama];

impl Vendor {
    /// The bare provider at this address.
    pub(crate) fn model(self, root: &str) -> Arc<dyn Model> {
        let v1 = format!("{root}/v1");
        match self {
            Chat => Arc::new(OpenAi::new("main").with_base_url(&v1).unwrap().with_api_key("k")),
            Responses => Arc::new(OpenAiResponses::new("main").with_base_url(&v1).unwrap().with_api_key("k")),
            Claude => Arc::new(Anthropic::new("main").with_base_url(root).unwrap().with_api_key("k")),
            Google => Arc::new(Gemini::new("main").with_base_url(root).unwrap().with_api_key("k")),
            Llama => Arc::new(Ollama::new("main").with_base_url(root).unwrap()),
        }
    }

    pub(crate) fn path(self) -> &'static str {
        match self {
            Chat => "/v1/chat/completions",
            Responses => "/v1/responses",
            Claude => "/v1/messages",
            Google => "/v1beta/models/main:streamGenerateContent?alt=sse",
            Llama => "/api/chat",
        }
    }

    pub(crate) fn media_type(self) -> &'static str {
        if self == Llama { "application/x-ndjson" } else { "text/event-stream" }
    }

    /// The frames in which it says an answer.
    pub(crate) async fn frames(self, turn: Turn) -> Vec<Vec<u8>> {
        let server = ModelServer::start(ScriptedModel::new().agent("main", [turn])).await.unwrap();
        let address = server.root_url().replace("http://", "");
        let mut stream = TcpStream::connect(&address).await.unwrap();
        let body =
            json!({ "model": "main", "stream": true, "stream_options": {"include_usage": true} }).to_string();
        let ask = format!(
            "POST {} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
            self.path(),
            body.len()
        );
        stream.write_all(ask.as_bytes()).await.unwrap();
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n0\r\n\r\n") {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0, "{}", String::from_utf8_lossy(&read));
        }
        let start = read.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        dechunked(&read[start..])
    }

    pub(crate) fn stream(self, frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<Step> {
        let headers = format!("content-type: {}\r\ntransfer-encoding: chunked\r\n", self.media_type());
        let frames = frames.into_iter().map(|frame| chunk(&frame));
        [head("200 OK", &headers)].into_iter().chain(frames).collect()
    }

    pub(crate) fn complete(self, frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<Step> {
        let mut steps = self.stream(frames);
        steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
        steps
    }

    /// An event of a kind that nobody has heard of yet, with fields that nobody knows.
    pub(crate) fn unknown(self) -> Vec<u8> {
        let data = json!({ "type": "from_the_future", "object": "from.the.future", "what": {"x": [1]} });
        match self {
            Llama => format!("{}\n", json!({ "model": "main", "from_the_future": 1, "done": false })),
            Claude | Responses => format!("event: from_the_future\ndata: {data}\n\n"),
            Chat | Google => {
                format!("data: {}\n\n", json!({ "choices": [], "candidates": [], "from_the_future": 1 }))
            }
        }
        .into_bytes()
    }

    pub(crate) fn garbage(self) -> Vec<u8> {
        match self {
            Llama => b"{\"message\": nonsense\n".to_vec(),
            Claude => b"event: content_block_delta\ndata: {\"type\": nonsense\n\n".to_vec(),
            Responses => b"event: response.output_text.delta\ndata: {\"type\": nonsense\n\n".to_vec(),
            Chat | Google => b"data: {\"choices\": nonsense\n\n".to_vec(),
        }
    }

    /// A refusal in the vendor's words.
    pub(crate) fn refusal(self, message: &str) -> String {
        match self {
            Chat | Responses => {
                json!({"error": {"message": message, "type": "t", "param": null, "code": null}})
            }
            Claude => json!({"type": "error", "error": {"type": "api_error", "message": message}}),
            Google => json!({"error": {"code": 1, "message": message, "status": "UNKNOWN"}}),
            Llama => json!({"error": message}),
        }
        .to_string()
    }
}

fn dechunked(mut body: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    loop {
        let line = body.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&body[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return frames;
        }
        frames.push(body[line + 2..][..size].to_vec());
        body = &body[line + 2 + size + 2..];
    }
}
