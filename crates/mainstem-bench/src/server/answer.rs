//! One connection: reads requests, runs their scripts.

use std::{io, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::{Instant, MissedTickBehavior, interval_at},
};

use crate::{
    measure,
    script::{Say, Script},
    wire::{self, Part, Wire},
};

/// The number of deltas in one write of a server without a pace; a network delivers about as many
/// at once.
const BATCH: u32 = 64;

pub(super) struct Visit {
    stream: BufReader<TcpStream>,
    /// The number of the connection.
    number: u32,
}

/// A request, of any wire.
struct Request {
    wire: Wire,
    body: Value,
}

impl Request {
    /// Returns the script: the first text that is one, until there are results.
    fn script(&self) -> io::Result<Script> {
        if has_result(&self.body) {
            return Ok(Script::Say(Say { deltas: 1, ..Say::default() }));
        }
        script(&self.body).ok_or_else(|| io::Error::other("the request has no script"))
    }
}

fn script(value: &Value) -> Option<Script> {
    match value {
        Value::String(text) => serde_json::from_str(text).ok(),
        Value::Array(values) => values.iter().find_map(script),
        Value::Object(fields) => fields.values().find_map(script),
        _ => None,
    }
}

/// Returns `true` if there is a result of a tool call, in the form of any wire.
fn has_result(value: &Value) -> bool {
    let is = |name: &str, kind: &str| value.get(name).is_some_and(|value| value == kind);
    match value {
        Value::Array(values) => values.iter().any(has_result),
        Value::Object(fields) => {
            is("role", "tool")
                || is("type", "tool_result")
                || is("type", "function_call_output")
                || fields.contains_key("functionResponse")
                || ["messages", "input", "contents", "content", "parts"]
                    .iter()
                    .any(|name| fields.get(*name).is_some_and(has_result))
        }
        _ => false,
    }
}

impl Visit {
    pub(super) fn new(socket: TcpStream, number: u32) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(socket), number })
    }

    /// A client that leaves in the middle is not an error: that is how a run is cancelled.
    pub(super) async fn serve(mut self) {
        while let Ok(Some(request)) = self.request().await {
            if self.answer(request).await.is_err() {
                break;
            }
        }
    }

    /// Returns the next request; `None` once the client has left.
    async fn request(&mut self) -> io::Result<Option<Request>> {
        let (mut line, mut length, mut wire) = (String::new(), 0, Wire::default());
        while self.stream.read_line(&mut line).await? > 0 && line != "\r\n" {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            if let Some(path) = line.strip_prefix("POST ") {
                wire = Wire::of_path(path);
            }
            line.clear();
        }
        if line.is_empty() {
            return Ok(None);
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok(Some(Request { wire, body: serde_json::from_slice(&body)? }))
    }

    async fn answer(&mut self, request: Request) -> io::Result<()> {
        let (script, wire) = (request.script()?, request.wire);
        let text = matches!(script, Script::Say(_));
        let mut bytes = head(wire).into_bytes();
        wire.write(&Part::Begin { text }, &mut bytes);
        match script {
            Script::Say(say) => {
                self.say(wire, say, bytes).await?;
                bytes = Vec::new();
            }
            Script::Start { children, each } => {
                let (agent, task) = (each.agent(), each.to_task());
                let call = |index| Part::Call { index, agent, task: &task };
                (0..children).for_each(|index| wire.write(&call(index), &mut bytes));
            }
        }
        wire.write(&Part::End { text }, &mut bytes);
        wire::finish(&mut bytes);
        self.stream.write_all(&bytes).await
    }

    /// Writes the deltas, after the beginning of the response.
    async fn say(&mut self, wire: Wire, say: Say, mut bytes: Vec<u8>) -> io::Result<()> {
        if say.pace == 0 {
            for index in 0..say.deltas {
                wire.write(&Part::Text { index, sent: measure::now() }, &mut bytes);
                if index % BATCH == BATCH - 1 {
                    self.stream.write_all(&bytes).await?;
                    bytes.clear();
                }
            }
            self.stream.write_all(&bytes).await?;
        } else {
            self.stream.write_all(&bytes).await?;
            self.pace(wire, say).await?;
        }
        if say.hangs {
            // Until the client leaves.
            self.stream.read_u8().await?;
        }
        Ok(())
    }

    async fn pace(&mut self, wire: Wire, say: Say) -> io::Result<()> {
        let pace = Duration::from_micros(say.pace);
        // Spread by the golden ratio, so that the children do not all send in the same instant.
        let share = (f64::from(self.number) * 0.618_034).fract();
        let mut ticks = interval_at(Instant::now() + pace.mul_f64(share), pace);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for index in 0..say.deltas {
            ticks.tick().await;
            let mut bytes = Vec::with_capacity(512);
            wire.write(&Part::Text { index, sent: measure::now() }, &mut bytes);
            self.stream.write_all(&bytes).await?;
        }
        Ok(())
    }
}

fn head(wire: Wire) -> String {
    let media_type = if wire.is_lines() { "application/x-ndjson" } else { "text/event-stream" };
    format!("HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ntransfer-encoding: chunked\r\n\r\n")
}
