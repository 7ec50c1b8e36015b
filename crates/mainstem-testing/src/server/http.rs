//! The part of HTTP/1.1 that a client of a model needs.

use std::io;

use mainstem_model::ModelError;
use serde_json::Value;
use tokio::{io::AsyncReadExt, net::TcpStream};

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Returns the body; `null` if it is not JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// Returns the next request; `None` when the client has left. `read` stores bytes that come early.
pub(super) async fn read_request(stream: &mut TcpStream, read: &mut Vec<u8>) -> io::Result<Option<Request>> {
    loop {
        if let Some((start, end)) = body(read) {
            let head = String::from_utf8_lossy(&read[..start]);
            let path = head.split_whitespace().nth(1).unwrap_or_default().to_owned();
            let body = read[start..end].to_vec();
            read.drain(..end);
            return Ok(Some(Request { path, body }));
        }
        if stream.read_buf(read).await? == 0 {
            return Ok(None);
        }
    }
}

/// Returns the place of a complete request's body.
fn body(read: &[u8]) -> Option<(usize, usize)> {
    let start = read.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&read[..start]).to_ascii_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:"))?.trim().parse::<usize>().ok()?;
    (read.len() >= start + length).then_some((start, start + length))
}

/// Ends when the client closes the connection.
pub(super) async fn left(stream: &TcpStream) {
    let mut byte = [0];
    while !matches!(stream.peek(&mut byte).await, Ok(0) | Err(_)) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn chunk(frame: &str) -> String {
    format!("{:x}\r\n{frame}\r\n", frame.len())
}

/// Writes a response while other futures watch the same connection.
#[derive(Clone, Copy)]
pub(super) struct Writer<'a>(pub(super) &'a TcpStream);

impl Writer<'_> {
    /// Writes the head; each of the further headers ends with a line break.
    pub(super) async fn begin(self, media_type: &str, headers: &str) -> io::Result<()> {
        self.send(&format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\n{headers}transfer-encoding: chunked\r\n\r\n"
        ))
        .await
    }

    /// Writes each frame in an HTTP chunk of its own.
    pub(super) async fn frames(self, frames: &[String]) -> io::Result<()> {
        for frame in frames {
            self.send(&chunk(frame)).await?;
        }
        Ok(())
    }

    /// Writes the last frames and the end of the body at once, so that a client which stops reading
    /// at the last frame has the whole body, and can use the connection again.
    pub(super) async fn end(self, frames: &[String]) -> io::Result<()> {
        let chunks: String = frames.iter().map(|frame| chunk(frame)).collect();
        self.send(&format!("{chunks}0\r\n\r\n")).await
    }

    pub(super) async fn refuse(self, error: &ModelError, body: &Value) -> io::Result<()> {
        let (status, body) = (error.status().unwrap_or(500), body.to_string());
        let wait = error.retry_after().map_or_else(String::new, |wait| {
            format!("retry-after: {}\r\nretry-after-ms: {}\r\n", wait.as_secs_f64().ceil(), wait.as_millis())
        });
        let length = body.len();
        self.send(&format!(
            "HTTP/1.1 {status} No\r\ncontent-type: application/json\r\n{wait}content-length: {length}\r\n\r\n{body}"
        ))
        .await
    }

    async fn send(self, text: &str) -> io::Result<()> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            self.0.writable().await?;
            match self.0.try_write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
