//! A scripted HTTP server for providers' own tests: for each connection a script of raw bytes,
//! pauses and cuts.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "whatever goes wrong here fails the test that it runs in"
)]

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};

/// A step of a connection once a request has been read.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "written by tests")]
pub enum Step {
    /// Writes these bytes.
    Send(Vec<u8>),
    /// Waits.
    Pause(Duration),
    /// Waits for the next request on the same connection.
    Next,
    /// Waits until the client closes the connection, and reports that.
    AwaitClose,
}

/// Returns a body sent as `text/event-stream`, one HTTP chunk for each payload.
pub fn events(payloads: &[&str]) -> Vec<Step> {
    streamed("text/event-stream", payloads.iter().map(|payload| format!("data: {payload}\n\n")))
}

/// Returns the same, with each event named as the first value of its payload, its `type`.
pub fn named_events(payloads: &[&str]) -> Vec<Step> {
    let name = |payload: &str| payload.split('"').nth(3).unwrap_or_default().to_owned();
    let named = payloads.iter().map(|payload| format!("event: {}\ndata: {payload}\n\n", name(payload)));
    streamed("text/event-stream", named)
}

/// Returns a body sent as `application/x-ndjson`, one HTTP chunk for each line.
pub fn lines(payloads: &[&str]) -> Vec<Step> {
    streamed("application/x-ndjson", payloads.iter().map(|payload| format!("{payload}\n")))
}

fn streamed(media_type: &str, frames: impl Iterator<Item = String>) -> Vec<Step> {
    let headers = format!("content-type: {media_type}\r\ntransfer-encoding: chunked\r\n");
    let chunks = frames.map(|frame| chunk(frame.as_bytes()));
    let end = Step::Send(b"0\r\n\r\n".to_vec());
    [head("200 OK", &headers)].into_iter().chain(chunks).chain([end]).collect()
}

/// Returns an HTTP chunk.
pub fn chunk(bytes: &[u8]) -> Step {
    Step::Send([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
}

/// Returns a response of one piece, after which the connection is closed.
pub fn whole(status: &str, headers: &str, body: &str) -> Vec<Step> {
    let length = format!("{headers}content-length: {}\r\nconnection: close\r\n", body.len());
    vec![head(status, &length), Step::Send(body.as_bytes().to_vec())]
}

/// Returns the head of a response; each header ends with a line break.
pub fn head(status: &str, headers: &str) -> Step {
    Step::Send(format!("HTTP/1.1 {status}\r\n{headers}\r\n").into_bytes())
}

/// An observation of the server.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "compared by tests")]
pub enum Seen {
    /// A client connected.
    Connected,
    /// A request, head and body.
    Request(String),
    /// The client closed the connection while the script awaited it.
    Closed,
}

/// A server on the loopback. Dropping it ends it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    seen: mpsc::Receiver<Seen>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts it. The first connection plays the first script, and so on.
    pub async fn start(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (report, seen) = mpsc::channel(100);
        #[expect(clippy::disallowed_methods, reason = "aborted when the server is dropped")]
        let task = tokio::spawn(async move {
            for script in scripts {
                let (stream, _) = listener.accept().await.unwrap();
                report.send(Seen::Connected).await.unwrap();
                play(stream, script, &report).await;
            }
        });
        Self { address, seen, task }
    }

    /// Returns scheme, host and port.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns host and port.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Returns the next observation, within 2 s.
    pub async fn next(&mut self) -> Seen {
        timeout(Duration::from_secs(2), self.seen.recv())
            .await
            .expect("the server notices something")
            .unwrap()
    }

    /// Returns the next request.
    pub async fn request(&mut self) -> String {
        loop {
            if let Seen::Request(request) = self.next().await {
                return request;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn play(mut stream: TcpStream, script: Vec<Step>, report: &mpsc::Sender<Seen>) {
    stream.set_nodelay(true).unwrap();
    let Some(request) = read_request(&mut stream).await else { return };
    report.send(Seen::Request(request)).await.unwrap();
    for step in script {
        match step {
            Step::Send(bytes) if stream.write_all(&bytes).await.is_err() => return,
            Step::Send(_) => {}
            Step::Pause(time) => sleep(time).await,
            Step::Next => match read_request(&mut stream).await {
                Some(request) => report.send(Seen::Request(request)).await.unwrap(),
                None => return,
            },
            Step::AwaitClose => {
                while stream.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
                report.send(Seen::Closed).await.unwrap();
            }
        }
    }
}

/// Reads head and body, by `content-length`; `None` if the client left.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if body.len() >= length.parse().unwrap() {
                return Some(text);
            }
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => read.extend_from_slice(&buffer[..n]),
        }
    }
}
