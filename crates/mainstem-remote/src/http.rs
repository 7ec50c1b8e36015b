//! Requests in protocols that are not ours: address, headers, bounds, retries.

use std::{error::Error as Cause, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use mainstem_outbound::{OutOfReach, Reach, Secrets, builder, retry_after};
use mainstem_sse::SseStream;
use reqwest::{
    Client, Method, Response, StatusCode, Url,
    header::{ACCEPT, HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::{RemoteError, declaration::Headers};

/// The largest response of a remote, in bytes.
const MAX_RESPONSE: usize = 32 << 20;

/// The largest frame of its stream, in bytes.
const MAX_FRAME: usize = 4 << 20;

/// How long it may take to connect, and to respond.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// How often a request is repeated that did not arrive or that an overloaded server refused, after
/// how long unless the server says, and at most.
pub(crate) const RETRIES: u32 = 5;
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The longest text of a refusal that a message repeats, in bytes.
const MAX_REASON: usize = 500;

/// The frames of a stream of server-sent events.
pub(crate) type Frames = SseStream<Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>>;

/// A server with its headers. Cheap to clone. Redirects are not followed, and no message shows a
/// secret.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    base: Url,
    headers: HeaderMap,
    client: Client,
    secrets: Arc<Secrets>,
}

/// Whether a request may be sent again after the connection was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It has its effect once, however often it is sent.
    Safe,
    /// It is sent again only if it can't have arrived.
    Unsafe,
}

/// What follows on a response without success.
enum After {
    /// The request is sent again.
    Repeated,
    /// The request may have had its effect: a proxy answers so, too.
    Lost,
    Refused,
}

impl Repeat {
    fn after(self, status: StatusCode) -> After {
        match (status.as_u16(), self) {
            (429 | 503, _) | (502 | 504, Self::Safe) => After::Repeated,
            (502 | 504, Self::Unsafe) => After::Lost,
            _ => After::Refused,
        }
    }
}

impl Connection {
    /// Creates the connection to a server within a reach.
    ///
    /// # Errors
    /// The URL is not valid, or out of reach.
    pub(crate) fn at(url: &str, reach: &Reach) -> Result<Self, RemoteError> {
        let base = Url::parse(url.trim_end_matches('/'))
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                RemoteError::invalid("the url is not an address that begins with http:// or https://")
            })?;
        reach.check(&base).map_err(|error| RemoteError::invalid(error.to_string()))?;
        let client = builder().connect_timeout(CONNECT_TIMEOUT).redirect(Policy::none());
        let client = reach.limit(client).build().map_err(|error| RemoteError::invalid(error.to_string()))?;
        let mut secrets = Secrets::default();
        secrets.add_url(&base);
        Ok(Self { base, headers: HeaderMap::new(), client, secrets: Arc::new(secrets) })
    }

    /// Adds a header to every request. Messages do not show its value.
    ///
    /// # Errors
    /// The name or the value is not valid in a header.
    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Result<Self, RemoteError> {
        Arc::make_mut(&mut self.secrets).add_header(value);
        let valid = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        let (name, mut value) = valid.ok_or_else(|| {
            RemoteError::invalid(format!("header {name:?} is not valid, or its value is not"))
        })?;
        value.set_sensitive(true);
        self.headers.append(name, value);
        Ok(self)
    }

    /// Adds the headers of a declaration.
    ///
    /// # Errors
    /// As [`with_header`](Self::with_header).
    pub(crate) fn with_headers(mut self, headers: &Headers) -> Result<Self, RemoteError> {
        Arc::make_mut(&mut self.secrets).extend(&headers.secrets);
        headers.values.iter().try_fold(self, |connection, (name, value)| connection.with_header(name, value))
    }

    /// Returns `true` if every request has this header; the name is in lower case.
    pub(crate) fn has_header(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }

    /// Returns the connection for the requests of a trace, with its `traceparent`.
    #[must_use]
    pub(crate) fn of_trace(&self, trace_parent: Option<&str>) -> Self {
        let mut connection = self.clone();
        if let Some(value) = trace_parent.and_then(|parent| HeaderValue::try_from(parent).ok()) {
            connection.headers.insert("traceparent", value);
        }
        connection
    }

    /// Returns the address of the server, without what may be secret.
    pub(crate) fn shown(&self) -> String {
        let mut url = self.base.clone();
        let _ = (url.set_username(""), url.set_password(None));
        url.set_query(None);
        url.as_str().trim_end_matches('/').to_owned()
    }

    /// Returns the address of a path below the server's, whose segments are encoded.
    pub(crate) fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Returns the JSON at an address. A response whose body is cut is requested again.
    ///
    /// # Errors
    /// The server can't be reached or refuses, or the response is not the expected one.
    pub(crate) async fn get<T: DeserializeOwned>(&self, url: Url) -> Result<T, RemoteError> {
        let mut attempt = 0;
        loop {
            let response = self.send(Method::GET, &url, None, &[], Repeat::Safe).await?;
            match self.json(response).await {
                Err(RemoteError::Unreachable { .. }) if attempt < RETRIES => attempt += 1,
                read => return read,
            }
            sleep(INTERVAL).await;
        }
    }

    /// Sends JSON, and returns that of the response; an empty one is `null`.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        url: Url,
        body: &Value,
        repeat: Repeat,
    ) -> Result<T, RemoteError> {
        self.json(self.send(Method::POST, &url, Some(body), &[], repeat).await?).await
    }

    /// Requests a stream of server-sent events, by a POST if there is a body.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) async fn frames(
        &self,
        url: Url,
        body: Option<&Value>,
        headers: &[(&str, String)],
        repeat: Repeat,
    ) -> Result<Frames, RemoteError> {
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let mut headers = headers.to_vec();
        headers.push((ACCEPT.as_str(), "text/event-stream".to_owned()));
        Ok(Self::frames_of(self.send(method, &url, body, &headers, repeat).await?))
    }

    /// Returns the frames of a response.
    pub(crate) fn frames_of(response: Response) -> Frames {
        SseStream::new(response.bytes_stream().boxed()).with_limit(MAX_FRAME)
    }

    /// Returns an address that a server has named, if it is on the server's own host and port.
    pub(crate) fn on_its_host(&self, url: &str) -> Option<Url> {
        let url = Url::parse(url).ok()?;
        (url.origin() == self.base.origin() && url.username().is_empty()).then_some(url)
    }

    /// Sends a request until it is answered, and returns a successful response.
    ///
    /// # Errors
    /// The server can't be reached, or refuses.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        body: Option<&Value>,
        headers: &[(&str, String)],
        repeat: Repeat,
    ) -> Result<Response, RemoteError> {
        let mut attempt = 0;
        loop {
            let mut request = self.client.request(method.clone(), url.clone()).headers(self.headers.clone());
            for (name, value) in headers {
                request = request.header(*name, value);
            }
            if let Some(body) = body {
                request = request.json(body);
            }
            let response = timeout(RESPONSE_TIMEOUT, request.send()).await;
            let (error, wait) = match response {
                Ok(Ok(response)) if response.status().is_success() => return Ok(response),
                Ok(Ok(response)) => {
                    let (status, wait) = (response.status(), retry_after(response.headers()));
                    let refused = self.refused(response).await;
                    match repeat.after(status) {
                        After::Repeated => (refused, wait.unwrap_or(INTERVAL).min(MAX_WAIT)),
                        After::Lost => return Err(RemoteError::unreachable(refused.to_string())),
                        After::Refused => return Err(refused),
                    }
                }
                Ok(Err(error)) if OutOfReach::is_cause_of(&error) => return Err(self.unreachable(&error)),
                Ok(Err(error)) if error.is_connect() || repeat == Repeat::Safe => {
                    (self.unreachable(&error), INTERVAL)
                }
                Ok(Err(error)) => return Err(self.unreachable(&error)),
                Err(_) => {
                    let seconds = RESPONSE_TIMEOUT.as_secs();
                    return Err(self.failed(&format!("no response within {seconds} s")));
                }
            };
            if attempt == RETRIES {
                return Err(error);
            }
            attempt += 1;
            sleep(wait).await;
        }
    }

    /// Reads a body up to the bound.
    ///
    /// # Errors
    /// The connection is lost, or the body is not the expected JSON.
    pub(crate) async fn json<T: DeserializeOwned>(&self, response: Response) -> Result<T, RemoteError> {
        let body = self.body(response).await?;
        let body = if body.is_empty() { b"null".as_slice() } else { &body };
        serde_json::from_slice(body)
            .map_err(|error| self.invalid(&format!("not the expected response: {error}")))
    }

    async fn body(&self, response: Response) -> Result<Vec<u8>, RemoteError> {
        let body = timeout(RESPONSE_TIMEOUT, self.whole(response)).await;
        let seconds = RESPONSE_TIMEOUT.as_secs();
        body.unwrap_or_else(|_| Err(self.failed(&format!("no complete response within {seconds} s"))))
    }

    async fn whole(&self, mut response: Response) -> Result<Vec<u8>, RemoteError> {
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if body.len() + bytes.len() > MAX_RESPONSE {
                return Err(self.invalid(&format!("the response is larger than {MAX_RESPONSE} bytes")));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    async fn refused(&self, response: Response) -> RemoteError {
        let status = response.status();
        let body = self.body(response).await.unwrap_or_default();
        // A secret that the bound would cut is found only in the whole text.
        let reason: String = self.secrets.redact(&reason(&body)).chars().take(MAX_REASON).collect();
        let what = if reason.is_empty() { status.to_string() } else { format!("{status}: {reason}") };
        RemoteError::Refused { message: self.said(&what), status: Some(status.as_u16()) }
    }

    /// Returns the error of a lost connection.
    pub(crate) fn unreachable(&self, error: &dyn Cause) -> RemoteError {
        let mut cause = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        self.failed(&cause.to_string())
    }

    fn failed(&self, what: &str) -> RemoteError {
        RemoteError::unreachable(self.said(what))
    }

    /// Returns the error of a response that is not in the protocol.
    pub(crate) fn invalid(&self, what: &str) -> RemoteError {
        RemoteError::invalid(self.said(what))
    }

    /// Returns the error of a request that was refused within its protocol.
    pub(crate) fn refusal(&self, what: &str) -> RemoteError {
        RemoteError::refused(self.said(what))
    }

    fn said(&self, what: &str) -> String {
        self.secrets.redact(&format!("{}: {what}", self.shown()))
    }
}

/// Returns the reason in the body of a refusal: the message in its JSON, or its text.
fn reason(body: &[u8]) -> String {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let places = ["/detail", "/error/message", "/error", "/message", "/title"];
    let message = places.iter().find_map(|place| json.pointer(place)?.as_str());
    let text = String::from_utf8_lossy(body);
    message.unwrap_or_else(|| text.trim()).to_owned()
}

#[cfg(test)]
mod tests {
    //! Addresses, reasons, and what is sent again.

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// Answers each request with this, and returns what a request to it comes to: it is sent once.
    async fn sent_once(answer: &str) -> RemoteError {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serve = async {
            let mut requests = 0;
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                requests += 1;
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await.unwrap();
                stream.write_all(answer.replace("{url}", &url).as_bytes()).await.unwrap();
                assert_eq!(requests, 1);
            }
        };
        let reach = Reach::public().with_host("127.0.0.1".parse().unwrap());
        let connection = Connection::at(&url, &reach).unwrap();
        let place = connection.url(&["x"]);
        let sent = connection.send(Method::POST, &place, None, &[], Repeat::Unsafe);
        tokio::select! {
            sent = sent => sent.unwrap_err(),
            () = serve => unreachable!(),
        }
    }

    #[tokio::test]
    async fn an_unsafe_request_is_sent_once_through_a_proxy() {
        let answer = "HTTP/1.1 504 Gateway Timeout\r\ncontent-length: 4\r\nconnection: close\r\n\r\nlate";
        let error = sent_once(answer).await;
        assert!(matches!(error, RemoteError::Unreachable { .. }), "{error:?}");
        assert!(error.to_string().ends_with("504 Gateway Timeout: late"), "{error}");
    }

    #[tokio::test]
    async fn a_redirect_is_not_followed() {
        for status in
            ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"]
        {
            let answer = format!("HTTP/1.1 {status}\r\nlocation: {{url}}/y\r\ncontent-length: 0\r\n\r\n");
            let error = sent_once(&answer).await;
            assert!(matches!(error, RemoteError::Refused { .. }), "{error:?}");
            assert!(error.to_string().ends_with(status), "{error}");
        }
    }

    #[tokio::test]
    async fn a_secret_that_the_bound_of_a_reason_cuts_is_not_shown() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let reach = Reach::public().with_host("127.0.0.1".parse().unwrap());
        let url = format!("http://{}", listener.local_addr().unwrap());
        let connection = Connection::at(&url, &reach).unwrap();
        let connection = connection.with_header("authorization", "Bearer a-long-secret-value").unwrap();
        let body = format!("{} a-long-secret-value", "x".repeat(MAX_REASON - 10));
        let answer = format!("HTTP/1.1 403 Forbidden\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
        };
        let place = connection.url(&["x"]);
        let sent = connection.send(Method::POST, &place, None, &[], Repeat::Unsafe);
        let error = tokio::join!(sent, serve).0.unwrap_err().to_string();
        assert!(error.contains("xxx") && !error.contains("a-long"), "{error}");
    }

    #[test]
    fn segments_are_encoded() {
        let reach = Reach::public();
        let url = |base: &str, path: &[&str]| Connection::at(base, &reach).unwrap().url(path).to_string();
        assert_eq!(url("https://host.example", &["tasks", "a/b c"]), "https://host.example/tasks/a%2Fb%20c");
        assert_eq!(url("https://host.example/agents/", &["x"]), "https://host.example/agents/x");
    }

    #[test]
    fn a_reason_is_the_message_of_the_body() {
        #[track_caller]
        fn check(body: &str, expected: &str) {
            assert_eq!(reason(body.as_bytes()), expected);
        }
        check("", "");
        check(r#"{"detail": "no such thread"}"#, "no such thread");
        check(r#"{"error": {"message": "busy"}}"#, "busy");
        check(r#"{"error": "gone"}"#, "gone");
        check("<html>bad gateway</html>", "<html>bad gateway</html>");
        check(r#"{"detail": [{"loc": ["body"]}]}"#, r#"{"detail": [{"loc": ["body"]}]}"#);
    }

    #[test]
    fn an_address_is_checked() {
        #[track_caller]
        fn check(url: &str, expected: &str) {
            assert_eq!(Connection::at(url, &Reach::public()).unwrap_err().to_string(), expected);
        }
        check("ftp://host", "the url is not an address that begins with http:// or https://");
        check("http://10.0.0.1", "10.0.0.1 is not a public address; `remote_hosts` allows this host");
    }
}
