//! Plain HTTP/1.1 without tasks: the poll of a response drives its connection.
//!
//! Other clients drive each connection in a task, which hands over one chunk for each wake-up of
//! the reader. Here one wake-up brings all chunks that a read of the socket brought.

use std::{
    future::poll_fn,
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use http_body_util::Full;
use hyper::{
    Request, Response, Uri,
    body::{Body as _, Incoming},
    client::conn::{TrySendError, http1},
};
use hyper_util::{
    client::{legacy::connect::HttpConnector, proxy::matcher::Matcher},
    rt::TokioIo,
};
use mainstem_outbound::{CONNECT_TIMEOUT, USER_AGENT};
use reqwest::{
    Url,
    header::{self, HOST, HeaderMap, HeaderValue},
};
use tokio::{net::TcpStream, time::timeout};
use tower::ServiceExt;

use super::{Body, TransportError, idle::Idle};

/// When the system probes a silent connection, and how often it repeats that, as reqwest has it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const PROBES: u32 = 3;

/// How long a server may leave bytes that were sent to it unconfirmed, as reqwest has it.
#[cfg(target_os = "linux")]
const UNCONFIRMED: Duration = Duration::from_secs(30);

/// Sends requests to servers that are reached without TLS and without a proxy.
pub(super) struct Direct {
    connector: HttpConnector,
    proxies: Matcher,
    idle: Arc<Idle>,
}

/// A connection, and what drives it.
pub(super) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` once it has ended: dropping it returns a request that was not sent.
    driver: Option<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>,
}

/// The body of a response. Its connection can be used again once it has ended.
pub(crate) struct DirectBody {
    /// `None` once it is dropped.
    incoming: Option<Incoming>,
    /// `None` once it has ended.
    connection: Option<Connection>,
    server: Uri,
    idle: Arc<Idle>,
}

impl Direct {
    pub(super) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_keepalive(Some(KEEP_ALIVE));
        connector.set_keepalive_interval(Some(KEEP_ALIVE));
        connector.set_keepalive_retries(Some(PROBES));
        #[cfg(target_os = "linux")]
        connector.set_tcp_user_timeout(Some(UNCONFIRMED));
        Self { connector, proxies: Matcher::from_system(), idle: Arc::default() }
    }

    /// Returns the URL for a request if it is reached this way.
    pub(super) fn reaches(&self, url: &Url) -> Option<Uri> {
        if url.scheme() != "http" || !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        let uri: Uri = url.as_str().parse().ok()?;
        self.proxies.intercept(&uri).is_none().then_some(uri)
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn post(
        &self,
        uri: Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Body>, TransportError> {
        let mut request = request(&uri, headers, body)?;
        while let Some(mut connection) = self.idle.take(&uri) {
            if connection.is_closed() {
                continue;
            }
            match connection.send(request).await {
                Ok(response) => return Ok(self.with_body(uri, connection, response)),
                Err(mut error) => match error.take_message() {
                    // The server has closed it before any of the request was sent.
                    Some(unsent) => request = unsent,
                    None => return Err(TransportError::Head(error.into_error())),
                },
            }
        }
        let mut connection = self.connect(uri.clone()).await?;
        let sent = connection.send(request).await;
        let response = sent.map_err(|error| TransportError::Head(error.into_error()))?;
        Ok(self.with_body(uri, connection, response))
    }

    async fn connect(&self, server: Uri) -> Result<Connection, TransportError> {
        // The connector's own limit leaves out the resolution of the name.
        let connected = timeout(CONNECT_TIMEOUT, self.connector.clone().oneshot(server)).await;
        let connected = connected.map_err(|late| TransportError::Connect(Box::new(io::Error::from(late))))?;
        let socket = connected.map_err(|error| TransportError::Connect(Box::new(error)))?;
        let (sender, driver) = http1::handshake(socket).await.map_err(TransportError::Head)?;
        Ok(Connection { sender, driver: Some(driver) })
    }

    fn with_body(&self, server: Uri, connection: Connection, response: Response<Incoming>) -> Response<Body> {
        let (connection, idle) = (Some(connection), self.idle.clone());
        response.map(|incoming| {
            Body::Direct(Box::new(DirectBody { incoming: Some(incoming), connection, server, idle }))
        })
    }
}

/// Returns a request as HTTP/1.1 has it for the server itself: with the path, and the host apart.
fn request(
    uri: &Uri,
    mut headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let host = uri.authority().map_or("", |authority| authority.as_str());
    headers.entry(HOST).or_insert(HeaderValue::from_str(host)?);
    headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::post(path).body(Full::new(body))?;
    *request.headers_mut() = headers;
    Ok(request)
}

impl Connection {
    /// Reads and writes; ready once the connection has ended. A failure is that of the response.
    fn poll_drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(driver) = &mut self.driver {
            // A failure is the response's.
            let _ = ready!(Pin::new(driver).poll(cx));
            self.driver = None;
        }
        Poll::Ready(())
    }

    /// Returns `true` if the server has closed it; reads what has arrived meanwhile.
    pub(super) fn is_closed(&mut self) -> bool {
        self.poll_drive(&mut Context::from_waker(Waker::noop())).is_ready() || !self.sender.is_ready()
    }

    async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        let mut response = pin!(self.sender.try_send_request(request));
        poll_fn(|cx| {
            let _ = self.poll_drive(cx);
            response.as_mut().poll(cx)
        })
        .await
    }
}

impl DirectBody {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Bytes>>> {
        loop {
            if let Some(connection) = &mut self.connection
                && connection.poll_drive(cx).is_ready()
            {
                self.connection = None;
            }
            let Some(incoming) = &mut self.incoming else { return Poll::Ready(None) };
            // Only the connection, which was driven just now, adds to it.
            let frame = ready!(Pin::new(incoming).poll_frame(&mut Context::from_waker(Waker::noop())));
            match frame.map(|frame| frame.map(|frame| frame.into_data())) {
                Some(Ok(Ok(bytes))) => return Poll::Ready(Some(Ok(bytes))),
                Some(Ok(Err(_trailers))) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    self.release();
                    return Poll::Ready(None);
                }
            }
        }
    }

    /// Leaves the connection to the next request if the response has ended, as far as it is known;
    /// closes it otherwise.
    fn release(&mut self) {
        self.incoming = None;
        if let Some(mut connection) = self.connection.take()
            && !connection.is_closed()
        {
            self.idle.put(&self.server, connection);
        }
    }
}

impl Stream for DirectBody {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_bytes(cx).map(|read| read.map(|read| read.map_err(TransportError::Body)))
    }
}

impl Drop for DirectBody {
    fn drop(&mut self) {
        self.release();
    }
}
