//! The vendors' APIs as bytes: what each says, in frames that can be played back broken.
//!
//! What a provider sends is recorded, and a [`ModelServer`] answers it in the vendor's words; so a
//! vendor that is new needs no line here.

use std::{fmt, sync::Arc};

use futures_util::StreamExt;
use mainstem::{
    message::Message,
    model::{Model, ModelError, ModelRequest, scripted::Turn},
    prelude::ScriptedModel,
    provider::{self, Setup},
};
use mainstem_testing::{
    ModelServer,
    raw::{Server, Step, chunk, head},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A vendor's API.
#[derive(Clone, Copy)]
pub(crate) struct Provider(&'static Known);

/// What is known of it from its row in the facade's table, and from what its provider and the
/// server say to each other.
struct Known {
    row: &'static provider::Provider,
    request: String,
    media_type: String,
}

/// Returns the vendors of this build.
pub(crate) async fn vendors() -> Vec<Provider> {
    let mut vendors = Vec::new();
    for row in provider::PROVIDERS {
        let request = request(row).await;
        let (head, _) = answer(&request, Turn::new().text("Hi")).await;
        let media_type = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-type: ").map(str::to_owned));
        vendors.push(Provider(Box::leak(Box::new(Known { row, request, media_type: media_type.unwrap() }))));
    }
    vendors
}

/// Returns the request that a provider sends.
async fn request(row: &'static provider::Provider) -> String {
    let mut server = Server::start(vec![vec![]]).await;
    let messages = vec![Arc::new(Message::user("go"))];
    let mut stream = bare(row, &server.url()).stream(ModelRequest { messages, ..ModelRequest::default() });
    assert!(stream.next().await.unwrap().is_err());
    server.request().await
}

/// Returns the bare provider at this address.
fn bare(row: &provider::Provider, root: &str) -> Arc<dyn Model> {
    let var = |name: &str| match name {
        name if name == row.base_url => Some(root.to_owned()),
        name if name == row.key => Some("k".to_owned()),
        _ => None,
    };
    row.bare_model("main", &Setup::new(&var)).unwrap()
}

/// Returns the head and the frames in which a server answers a request.
async fn answer(request: &str, turn: Turn) -> (String, Vec<Vec<u8>>) {
    let server = ModelServer::start(ScriptedModel::new().agent("main", [turn])).await.unwrap();
    let address = server.root_url().replace("http://", "");
    let mut stream = TcpStream::connect(&address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    loop {
        if let Some(answer) = complete(&read) {
            return answer;
        }
        assert!(stream.read_buf(&mut read).await.unwrap() > 0, "{}", String::from_utf8_lossy(&read));
    }
}

/// Returns a response that has arrived; `None` if more is to come.
fn complete(read: &[u8]) -> Option<(String, Vec<Vec<u8>>)> {
    let start = read.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(read[..start].to_vec()).unwrap();
    let body = &read[start..];
    let length: Option<usize> = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    match length {
        Some(length) => (body.len() == length).then(|| (head, vec![body.to_vec()])),
        None => body.ends_with(b"\r\n0\r\n\r\n").then(|| (head, dechunked(body))),
    }
}

impl Provider {
    pub(crate) fn name(self) -> &'static str {
        self.0.row.name
    }

    /// Returns the bare provider at this address.
    pub(crate) fn model(self, root: &str) -> Arc<dyn Model> {
        bare(self.0.row, root)
    }

    /// Returns the frames in which it says an answer.
    pub(crate) async fn frames(self, turn: Turn) -> Vec<Vec<u8>> {
        answer(&self.0.request, turn).await.1
    }

    pub(crate) fn stream(self, frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<Step> {
        let headers = format!("content-type: {}\r\ntransfer-encoding: chunked\r\n", self.0.media_type);
        let frames = frames.into_iter().map(|frame| chunk(&frame));
        [head("200 OK", &headers)].into_iter().chain(frames).collect()
    }

    pub(crate) fn complete(self, frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<Step> {
        let mut steps = self.stream(frames);
        steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
        steps
    }

    /// Returns an event of an unknown kind, with unknown fields.
    pub(crate) fn unknown(self) -> Vec<u8> {
        let data = json!({
            "type": "from_the_future", "object": "from.the.future", "what": {"x": [1]}, "from_the_future": 1,
            "choices": [], "candidates": [], "model": "main", "done": false,
        });
        self.frame("from_the_future", &data.to_string())
    }

    pub(crate) fn garbage(self) -> Vec<u8> {
        self.frame("content_block_delta", "{\"type\": nonsense")
    }

    fn frame(self, event: &str, data: &str) -> Vec<u8> {
        if self.0.media_type.contains("ndjson") {
            format!("{data}\n").into_bytes()
        } else {
            format!("event: {event}\ndata: {data}\n\n").into_bytes()
        }
    }

    /// Returns the body of a refusal in the vendor's words.
    pub(crate) async fn refusal(self, message: &str) -> String {
        let refused = Turn::new().fail(ModelError::from_status(500, message));
        let (_, frames) = answer(&self.0.request, refused).await;
        let body = String::from_utf8(frames.concat()).unwrap();
        assert!(body.contains(message), "{body}");
        body
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
