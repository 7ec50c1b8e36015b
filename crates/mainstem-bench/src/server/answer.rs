//! One connection: reads requests, runs their scripts.

use std::{io, time::Duration};

use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::{Instant, MissedTickBehavior, interval_at},
};

use super::chunk::{self, Chunk};
use crate::{
    measure,
    script::{Say, Script},
};

/// The number of deltas in one write of a server without a pace; a network delivers about as many
/// at once.
const BATCH: u32 = 64;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

pub(super) struct Visit {
    stream: BufReader<TcpStream>,
    /// The number of the connection.
    number: u32,
}

#[derive(Deserialize)]
struct Request {
    messages: Vec<ChatMessage>,
}

#[derive(Deserialize)]
struct ChatMessage {
    role: String,
    content: Option<String>,
}

impl Request {
    /// Returns the script: the first user message, until there are results.
    fn script(self) -> io::Result<Script> {
        if self.messages.last().is_some_and(|message| message.role == "tool") {
            return Ok(Script::Say(Say { deltas: 1, ..Say::default() }));
        }
        let task = self
            .messages
            .into_iter()
            .find(|message| message.role == "user")
            .and_then(|message| message.content);
        Ok(serde_json::from_str(&task.unwrap_or_default())?)
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
        let (mut line, mut length) = (String::new(), 0);
        while self.stream.read_line(&mut line).await? > 0 && line != "\r\n" {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            line.clear();
        }
        if line.is_empty() {
            return Ok(None);
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok(Some(serde_json::from_slice(&body)?))
    }

    async fn answer(&mut self, request: Request) -> io::Result<()> {
        let script = request.script()?;
        let mut bytes = HEAD.as_bytes().to_vec();
        Chunk::Role.write(&mut bytes);
        let finish_reason = match script {
            Script::Say(say) => {
                self.say(say, bytes).await?;
                bytes = Vec::new();
                "stop"
            }
            Script::Start { children, each } => {
                let (agent, task) = (each.agent(), each.to_task());
                (0..children).for_each(|index| Chunk::Call { index, agent, task: &task }.write(&mut bytes));
                "tool_calls"
            }
        };
        Chunk::End { finish_reason }.write(&mut bytes);
        chunk::done(&mut bytes);
        self.stream.write_all(&bytes).await
    }

    /// Writes the deltas, after the beginning of the response.
    async fn say(&mut self, say: Say, mut bytes: Vec<u8>) -> io::Result<()> {
        if say.pace == 0 {
            for index in 0..say.deltas {
                Chunk::Text { sent: measure::now() }.write(&mut bytes);
                if index % BATCH == BATCH - 1 {
                    self.stream.write_all(&bytes).await?;
                    bytes.clear();
                }
            }
            self.stream.write_all(&bytes).await?;
        } else {
            self.stream.write_all(&bytes).await?;
            self.pace(say).await?;
        }
        if say.hangs {
            // Until the client leaves.
            self.stream.read_u8().await?;
        }
        Ok(())
    }

    async fn pace(&mut self, say: Say) -> io::Result<()> {
        let pace = Duration::from_micros(say.pace);
        // Spread by the golden ratio, so that the children do not all send in the same instant.
        let share = (f64::from(self.number) * 0.618_034).fract();
        let mut ticks = interval_at(Instant::now() + pace.mul_f64(share), pace);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for _ in 0..say.deltas {
            ticks.tick().await;
            let mut bytes = Vec::with_capacity(512);
            Chunk::Text { sent: measure::now() }.write(&mut bytes);
            self.stream.write_all(&bytes).await?;
        }
        Ok(())
    }
}
