//! A server that is asked: `--server`.

use std::{fmt, io::Write as _, time::Duration};

use anyhow::{Context, anyhow, ensure};
use bytes::Bytes;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream, LocalBoxStream},
};
use mainstem::subagent::trust::shown_address;
use mainstem_event::AgentEvent;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, header, redirect::Policy};
use serde_json::Value;
use tokio::time::sleep;

use crate::{args::At, config::var};

/// The variable that holds the token.
const TOKEN: &str = "MAINSTEM_TOKEN";

/// How often a server that does not answer is asked again, and how long after.
const TRIES: u32 = 5;
const AGAIN: Duration = Duration::from_secs(1);

/// How long it may take to be reached, and to answer; a wait for a task takes half a minute by itself.
const CONNECTING: Duration = Duration::from_secs(10);
const ANSWERING: Duration = Duration::from_secs(75);

/// Largest answer that is read, in bytes: an event of the largest model answer fits.
const ANSWER: usize = 64 << 20;

/// Longest line of a stream of events, in bytes; a server cuts larger events.
const LINE: usize = 4 << 20;

/// What a server says no with.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Stable.
    pub(crate) code: String,
    says: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.says)
    }
}

impl std::error::Error for Refused {}

/// A server, and how one gets in. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Remote {
    base: String,
    /// The address as messages show it.
    shown: String,
    token: Option<String>,
    client: Client,
}

impl Remote {
    /// The one that is named, if one is.
    ///
    /// # Errors
    /// The name is no address.
    pub(crate) fn of(at: &At) -> anyhow::Result<Option<Self>> {
        Self::at(at.server.as_deref())
    }

    /// The one at this address, if there is one.
    ///
    /// # Errors
    /// It is no address.
    pub(crate) fn at(server: Option<&str>) -> anyhow::Result<Option<Self>> {
        let Some(server) = server else { return Ok(None) };
        let base = server.trim_end_matches('/').trim_end_matches("/v1").to_owned();
        let url =
            reqwest::Url::parse(&base).with_context(|| format!("--server {}", shown_address(server)))?;
        ensure!(
            ["http", "https"].contains(&url.scheme()),
            "--server {}: an address begins with http:// or https://",
            shown_address(server)
        );
        // Refused if one is installed already, which then serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // What is said to this server is for no other.
        let client = Client::builder().connect_timeout(CONNECTING).redirect(Policy::none()).build()?;
        Ok(Some(Self { shown: shown_address(&base), base, token: var(TOKEN), client }))
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}/v1{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// What is at a path.
    ///
    /// # Errors
    /// The server is not reached, or says why not.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.answer(self.request(Method::GET, path)).await
    }

    /// What comes of a body.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.answer(self.request(Method::POST, path).json(body)).await
    }

    /// The same of what may be said twice: a server that is not reached is asked again, as often as for events.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) async fn insist(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        for _ in 0..TRIES {
            match self.post(path, body).await {
                Err(error) if !error.is::<Refused>() => sleep(AGAIN).await,
                answered => return answered,
            }
        }
        self.post(path, body).await
    }

    /// Forgets what is at a path.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<()> {
        self.answer(self.request(Method::DELETE, path)).await.map(drop)
    }

    async fn answer(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let request = request.timeout(ANSWERING);
        let response = self.checked(request.send().await.map_err(|error| self.unreached(&error))?).await?;
        let bytes = self.body(response).await?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).with_context(|| format!("{}: the answer is no JSON", self.shown))
    }

    /// The whole of an answer, if it has an end.
    async fn body(&self, mut response: Response) -> anyhow::Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| self.unreached(&error))? {
            ensure!(
                body.len() + bytes.len() <= ANSWER,
                "{}: the answer is larger than {ANSWER} bytes",
                self.shown
            );
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    /// An answer that is no error.
    async fn checked(&self, response: Response) -> anyhow::Result<Response> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let elsewhere = response.headers().get(header::LOCATION).filter(|_| status.is_redirection());
        let elsewhere = elsewhere.and_then(|location| location.to_str().ok()).map(shown_address);
        let body = self.body(response).await.unwrap_or_default();
        let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
        let detail = match (problem["detail"].as_str(), elsewhere) {
            (Some(detail), _) => detail.to_owned(),
            (None, Some(elsewhere)) => format!("{status}: the server is at {elsewhere}; give that address"),
            (None, None) => status.to_string(),
        };
        let is_unknown = status == StatusCode::UNAUTHORIZED && self.token.is_none();
        let hint = if is_unknown { format!("; set {TOKEN}") } else { String::new() };
        let code = problem["code"].as_str().unwrap_or_default().to_owned();
        Err(Refused { code, says: format!("{}: {detail}{hint}", self.shown) }.into())
    }

    fn unreached(&self, error: &reqwest::Error) -> anyhow::Error {
        let cause = std::iter::successors(std::error::Error::source(error), |cause| cause.source()).last();
        let why = cause.map_or_else(|| error.to_string(), ToString::to_string);
        anyhow!("{} is not reached: {why}", self.shown)
    }

    /// The events at a path, which has a query already, behind one of them.
    pub(crate) fn events(&self, path: String, after: u64) -> Events {
        Events { remote: self.clone(), path, last: after, body: None, buffer: Vec::new(), tries: 0 }
    }
}

/// Events from a server, each once: where the connection is lost, it goes on behind the last that came.
pub(crate) struct Events {
    remote: Remote,
    path: String,
    last: u64,
    body: Option<BoxStream<'static, reqwest::Result<Bytes>>>,
    buffer: Vec<u8>,
    tries: u32,
}

impl Events {
    /// All of them; after an error there are no more.
    pub(crate) fn into_stream(self) -> LocalBoxStream<'static, anyhow::Result<AgentEvent>> {
        let next = |mut events: Self| async move { Ok(events.next().await?.map(|event| (event, events))) };
        stream::try_unfold(self, next).boxed_local()
    }

    /// The next; `None` when there will be no more. Nothing is lost when it is dropped while it waits.
    ///
    /// # Errors
    /// The server is not reached any more, or says why not.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<AgentEvent>> {
        loop {
            if let Some(line) = self.line() {
                let event = self.event(&line).await?;
                self.last = event.seq;
                self.tries = 0;
                // Only now, for whoever waits may give up before.
                self.buffer.drain(..=line.len());
                return Ok(Some(event));
            }
            let Some(body) = &mut self.body else {
                if !self.connect().await? {
                    return Ok(None);
                }
                continue;
            };
            match body.next().await {
                Some(Ok(bytes)) => {
                    self.buffer.extend_from_slice(&bytes);
                    let (shown, held) = (&self.remote.shown, self.buffer.len());
                    let is_line = held <= LINE || self.buffer.contains(&b'\n');
                    ensure!(is_line, "{shown}: a line of the stream is longer than {LINE} bytes");
                }
                // It says by another answer whether there is more.
                Some(Err(_)) | None => (self.body, self.buffer) = (None, Vec::new()),
            }
        }
    }

    /// Asks on. `false` if there is nothing more.
    async fn connect(&mut self) -> anyhow::Result<bool> {
        let request = self.remote.request(Method::GET, &self.path).header("accept", "application/x-ndjson");
        match request.header("last-event-id", self.last).send().await {
            Ok(response) if response.status() == StatusCode::NO_CONTENT => Ok(false),
            Ok(response) if is_temporary(response.status()) && self.tries < TRIES => self.wait().await,
            Ok(response) if response.status() == StatusCode::GONE => self.skip(response).await,
            Ok(response) => {
                let response = self.remote.checked(response).await?;
                self.body = Some(response.bytes_stream().boxed());
                Ok(true)
            }
            Err(_) if self.tries < TRIES => self.wait().await,
            Err(error) => Err(self.remote.unreached(&error)),
        }
    }

    /// Goes on with what is still kept, and says that something is not.
    async fn skip(&mut self, response: Response) -> anyhow::Result<bool> {
        let problem: Value = serde_json::from_slice(&self.remote.body(response).await?).unwrap_or_default();
        let oldest = problem["oldest_seq"].as_u64().filter(|oldest| *oldest > self.last + 1);
        let oldest = oldest.with_context(|| format!("{}: {}", self.remote.shown, problem["detail"]))?;
        let note = format!("warning: events {} to {} are no longer kept", self.last + 1, oldest - 1);
        // Who closed stderr wanted no more.
        let _ = writeln!(std::io::stderr(), "{note}");
        self.last = oldest - 1;
        Ok(true)
    }

    async fn wait(&mut self) -> anyhow::Result<bool> {
        self.tries += 1;
        sleep(AGAIN).await;
        Ok(true)
    }

    /// The next line that has come, which stays; signs of life are passed over.
    fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            let end = self.buffer.iter().position(|byte| *byte == b'\n')?;
            if !self.buffer[..end].trim_ascii().is_empty() {
                return Some(self.buffer[..end].to_vec());
            }
            self.buffer.drain(..=end);
        }
    }

    /// An event as it is, also if it was too large for a stream.
    async fn event(&self, line: &[u8]) -> anyhow::Result<AgentEvent> {
        let place = || format!("{}: what came after event {}", self.remote.shown, self.last);
        let value: Value = serde_json::from_slice(line).with_context(place)?;
        let whole = match value["truncated"]["href"].as_str() {
            Some(href) => self.remote.get(below_version(href)).await?,
            None => value,
        };
        serde_json::from_value(whole).with_context(place)
    }
}

/// Returns the path of a link after `/v1`; a nested server has a path prefix before it.
fn below_version(href: &str) -> &str {
    href.rfind("/v1/sessions/").map_or(href, |place| &href[place + "/v1".len()..])
}

fn is_temporary(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// A part of a path, whatever is in it.
pub(crate) fn escape(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~:".contains(&byte);
    part.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    //! Parts of paths, and what is said again.

    use std::{
        io::{BufRead, BufReader, Read},
        net::TcpListener,
        thread,
    };

    use super::*;

    #[test]
    fn links_of_a_server_lead_below_its_own_path() {
        #[track_caller]
        fn check(href: &str) {
            assert_eq!(below_version(href), "/sessions/s/events/7");
        }
        check("/v1/sessions/s/events/7");
        check("/v1/agents/v1/sessions/s/events/7");
        check("/api/v1beta/v1/sessions/s/events/7");
    }

    #[tokio::test]
    async fn what_may_be_said_twice_reaches_a_server_that_comes_back() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let remote = Remote::at(Some(&format!("http://{address}"))).unwrap().unwrap();
        assert!(!remote.post("/x", &Value::Null).await.unwrap_err().is::<Refused>(), "nobody is there");
        let back = thread::spawn(move || {
            thread::sleep(AGAIN / 4);
            let (mut asking, _) = TcpListener::bind(address).unwrap().accept().unwrap();
            let mut reader = BufReader::new(asking.try_clone().unwrap());
            let mut lines = reader.by_ref().lines().map_while(Result::ok);
            let first = lines.next();
            lines.find(String::is_empty);
            // What is not read when it is closed may cost the asker the answer.
            reader.read_exact(&mut [0; "null".len()]).unwrap();
            let body = r#"{"code":"not_asked","detail":"nobody asks"}"#;
            let head = format!("HTTP/1.1 409 Conflict\r\ncontent-length: {}\r\n\r\n", body.len());
            asking.write_all((head + body).as_bytes()).unwrap();
            first
        });
        // A server that says no has heard it.
        let error = remote.insist("/x", &Value::Null).await.unwrap_err();
        assert_eq!(error.downcast_ref::<Refused>().unwrap().code, "not_asked");
        assert_eq!(error.to_string(), format!("http://{address}: nobody asks"));
        assert_eq!(back.join().unwrap().unwrap(), "POST /v1/x HTTP/1.1");
    }

    /// A server that answers anything with this, and then with so many bytes of a body.
    fn server(head: &'static str, size: usize) -> Remote {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut asking, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(asking.try_clone().unwrap()).lines().map_while(Result::ok);
            lines.find(String::is_empty);
            asking.write_all(head.as_bytes()).unwrap();
            // The reader leaves when it has read enough.
            let piece = [b'x'; 1 << 16];
            let _ = (0..size / piece.len()).try_for_each(|_| asking.write_all(&piece));
        });
        Remote::at(Some(&format!("http://{address}"))).unwrap().unwrap()
    }

    #[tokio::test]
    async fn what_a_server_says_is_read_to_a_bound() {
        let endless = "HTTP/1.1 200 OK\r\n\r\n";
        let error = server(endless, 2 * ANSWER).get("/x").await.unwrap_err().to_string();
        assert!(error.ends_with("the answer is larger than 67108864 bytes"), "{error}");
        let mut events = server(endless, 2 * LINE).events("/x?y".to_owned(), 0);
        let error = events.next().await.unwrap_err().to_string();
        assert!(error.ends_with("a line of the stream is longer than 4194304 bytes"), "{error}");
    }

    #[tokio::test]
    async fn a_server_that_is_elsewhere_is_not_followed() {
        let moved = "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://u:p@127.0.0.1:1/y?z\r\ncontent-length: 0\r\n\r\n";
        let error = server(moved, 0).post("/x", &Value::Null).await.unwrap_err().to_string();
        assert!(error.ends_with("the server is at http://127.0.0.1:1/y; give that address"), "{error}");
    }

    #[test]
    fn a_part_of_a_path_stays_one() {
        for (part, expected) in [
            ("agent:kid:1", "agent:kid:1"),
            ("a/b", "a%2Fb"),
            ("../x?y#z", "..%2Fx%3Fy%23z"),
            ("ä", "%C3%A4"),
        ] {
            assert_eq!(escape(part), expected);
        }
    }
}
