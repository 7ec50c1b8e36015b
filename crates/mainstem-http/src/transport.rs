//! The seam to the HTTP stack: a client, one request, and the bytes of its response.

mod direct;
mod error;
mod idle;
mod shared;

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use http_body_util::BodyDataStream;
use hyper::{Response, Uri};
use mainstem_model::ModelError;
use reqwest::{
    Client, RequestBuilder, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};

pub(crate) use self::error::{TransportError, failure};
use self::{
    direct::{Direct, DirectBody},
    shared::Stack,
};
use crate::Server;

/// The HTTP client for requests.
///
/// By default, all models of a tokio runtime share their connections. A server whose address begins
/// with `http://` is asked with HTTP/1.1, without a task for the connection. Any other server, and
/// one behind a proxy, is asked through clients of reqwest. Each of these carries up to 100 calls
/// at once, as many as vendors allow on a connection of HTTP/2. The first is built by the first
/// request that needs it, so that a failure to build it is that request's error.
///
/// A client that is made [from](From) one of reqwest sends all requests through that.
#[derive(Clone)]
pub struct HttpClient(Kind);

#[derive(Clone)]
enum Kind {
    Own(Arc<Client>),
    /// Holds the stack that was used last, which ends with its holders.
    Shared(Arc<Mutex<Option<Arc<Stack>>>>),
}

impl Default for HttpClient {
    fn default() -> Self {
        Self(Kind::Shared(Arc::default()))
    }
}

impl From<Client> for HttpClient {
    fn from(client: Client) -> Self {
        Self(Kind::Own(Arc::new(client)))
    }
}

impl HttpClient {
    /// Sends a request and waits for the head of its response.
    pub(crate) async fn post(&self, server: &Server, body: Vec<u8>) -> Result<Response<Body>, ModelError> {
        let headers = headers(
            server,
            [(ACCEPT, "text/event-stream, application/json"), (CONTENT_TYPE, "application/json")],
        )?;
        let (url, way) = (server.url(), self.way());
        let sent = match way.direct(url) {
            Some((direct, uri)) => direct.post(uri, headers, body.into()).await,
            None => way.send(|client| client.post(url.clone()).headers(headers).body(body)).await,
        };
        sent.map_err(|error| failure(server, error))
    }

    /// Asks for a body of this type and waits for the head of the response. With a limit, the whole
    /// body must arrive within it.
    pub(crate) async fn get(
        &self,
        server: &Server,
        accept: &'static str,
        limit: Option<Duration>,
    ) -> Result<Response<Body>, ModelError> {
        let headers = headers(server, [(ACCEPT, accept)])?;
        let url = server.url().clone();
        let request = |client: &Client| {
            let request = client.get(url).headers(headers);
            limit.into_iter().fold(request, RequestBuilder::timeout)
        };
        self.way().send(request).await.map_err(|error| failure(server, error))
    }

    fn way(&self) -> Way {
        match &self.0 {
            Kind::Own(client) => Way::Own(client.clone()),
            Kind::Shared(held) => {
                let stack = Stack::of_runtime();
                *held.lock().unwrap_or_else(PoisonError::into_inner) = Some(stack.clone());
                Way::Shared(stack)
            }
        }
    }
}

/// What sends a request.
enum Way {
    Own(Arc<Client>),
    Shared(Arc<Stack>),
}

impl Way {
    /// Returns the transport without tasks, and the URL for it, if it reaches that.
    fn direct(&self, url: &Url) -> Option<(&Direct, Uri)> {
        let Self::Shared(stack) = self else { return None };
        Some((&stack.direct, stack.direct.reaches(url)?))
    }

    /// Sends a request through a client of reqwest.
    async fn send(
        &self,
        request: impl FnOnce(&Client) -> RequestBuilder,
    ) -> Result<Response<Body>, TransportError> {
        let client = match self {
            Self::Own(client) => client.clone(),
            Self::Shared(stack) => stack.client()?,
        };
        let response = request(&client).send().await?;
        Ok(Response::from(response).map(|body| Body::Client(BodyDataStream::new(body), client)))
    }
}

/// Returns the headers of a request: those of the server, and these unless it has others.
fn headers<const N: usize>(
    server: &Server,
    defaults: [(HeaderName, &'static str); N],
) -> Result<HeaderMap, ModelError> {
    let mut headers = server.headers()?;
    for (name, value) in defaults {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    Ok(headers)
}

/// The bytes of a response as they arrive. Dropping it before its end closes the connection, or the
/// stream of HTTP/2.
pub(crate) enum Body {
    Direct(Box<DirectBody>),
    /// With the client, where the call counts until it ends.
    Client(BodyDataStream<reqwest::Body>, #[expect(dead_code, reason = "held")] Arc<Client>),
}

impl Stream for Body {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut *self {
            Self::Direct(body) => Pin::new(body).poll_next(cx),
            Self::Client(body, _) => {
                Pin::new(body).poll_next(cx).map(|read| read.map(|read| read.map_err(TransportError::from)))
            }
        }
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0 {
            Kind::Own(_) => "own",
            Kind::Shared(_) => "shared",
        };
        f.debug_tuple("HttpClient").field(&kind).finish()
    }
}
