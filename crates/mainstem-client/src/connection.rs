//! Requests to a server: address, token, bounds, retries.

use std::{error::Error as Cause, sync::Arc, time::Duration};

use mainstem_api::{Code, Endpoint, Error, Method, Problem};
use mainstem_outbound::{OutOfReach, Reach, builder, retry_after};
use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    header::{self, HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::sleep;

/// How often a request is repeated at most, and after how long.
pub(crate) const RETRIES: u32 = 5;
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// How long it may take to connect, and to respond; a wait for a task takes half a minute by
/// itself.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(75);

/// How an address is written.
const WRITTEN: &str = "an address begins with http:// or https://";

/// The default bound of a response, in bytes. A run's view has the answer twice, and an answer of
/// 16 MiB may have six times as many bytes as JSON.
const MAX_RESPONSE: usize = 256 << 20;

/// An address and a token. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connection {
    base: Arc<str>,
    /// The address as messages show it: without user, password and query.
    pub(crate) shown: Arc<str>,
    token: Option<Arc<str>>,
    headers: HeaderMap,
    client: Client,
    pub(crate) max_response: usize,
}

/// When a request is repeated. A request that can have an effect twice has an `Idempotency-Key`.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Retry {
    Never,
    /// The connection was lost after it was established.
    Lost,
    /// The server can't be reached.
    Unreachable,
}

/// A request: an endpoint with its parameters.
pub(crate) struct Request<'a> {
    pub(crate) endpoint: Endpoint,
    pub(crate) path: &'a [&'a str],
}

impl Connection {
    /// # Errors
    /// If the address is not an HTTP URL, has a query or a fragment, or the TLS library can't be
    /// initialized.
    pub(crate) fn new(address: &str, reach: Option<&Reach>) -> Result<Self, Error> {
        let base = address.trim_end_matches('/').trim_end_matches("/v1");
        let url = Url::parse(base).map_err(|error| match base.contains("://") {
            true => invalid(named(address), error),
            false => Error::invalid(named(address), WRITTEN),
        })?;
        // Without a host, what is before an `@` may be a password.
        let shown = if url.has_host() { shown(&url) } else { named(address).to_owned() };
        if !["http", "https"].contains(&url.scheme()) {
            return Err(Error::invalid(shown, WRITTEN));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(Error::invalid(shown, "an address ends before `?` and `#`"));
        }
        if let Some(reach) = reach {
            reach.check(&url).map_err(|error| invalid(&shown, error))?;
        }
        // A redirect would send the token to another server.
        let client = builder().connect_timeout(CONNECT_TIMEOUT).redirect(Policy::none());
        let client = match reach {
            Some(reach) => reach.limit(client).build(),
            None => client.build(),
        };
        let client = client.map_err(|error| invalid(&shown, error))?;
        let (base, shown) = (base.into(), shown.into());
        Ok(Self { base, shown, token: None, headers: HeaderMap::new(), client, max_response: MAX_RESPONSE })
    }

    pub(crate) fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.into());
        self
    }

    /// # Errors
    /// If the name or the value is not valid in a header.
    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Result<Self, Error> {
        let valid = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        let (name, mut value) = valid
            .ok_or_else(|| self.invalid(format!("header {name:?} is not valid, or its value is not")))?;
        value.set_sensitive(true);
        self.headers.append(name, value);
        Ok(self)
    }

    pub(crate) fn request(&self, Request { endpoint, path }: &Request<'_>) -> RequestBuilder {
        let method = match endpoint.operation().method() {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Delete => reqwest::Method::DELETE,
        };
        let request = self.client.request(method, format!("{}{}", self.base, endpoint.path(path)));
        let request = request.headers(self.headers.clone());
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Returns the response to a request without a body.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        endpoint: Endpoint,
        path: &[&str],
        query: impl Serialize,
    ) -> Result<T, Error> {
        let request = self.request(&Request { endpoint, path }).query(&query);
        self.read(&self.fetch(request, Retry::Never).await?)
    }

    /// Sends a body and returns the response.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        retry: Retry,
    ) -> Result<T, Error> {
        self.read(&self.fetch(request, retry).await?)
    }

    /// Returns the whole body of a successful response.
    pub(crate) async fn fetch(&self, request: RequestBuilder, retry: Retry) -> Result<Vec<u8>, Error> {
        let request = request.timeout(RESPONSE_TIMEOUT);
        for _ in 0..RETRIES {
            // A body that can't be cloned is sent once.
            let Some(copy) = request.try_clone().filter(|_| retry != Retry::Never) else { break };
            match copy.send().await {
                Ok(response) => return self.body(self.checked(response).await?).await,
                Err(error)
                    if OutOfReach::is_cause_of(&error) || (error.is_connect() && retry == Retry::Lost) =>
                {
                    return Err(self.unreachable(&error));
                }
                Err(_) => sleep(INTERVAL).await,
            }
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        self.body(self.checked(response).await?).await
    }

    fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, Error> {
        // An empty response is `()`.
        let body = if body.is_empty() { b"null" } else { body };
        serde_json::from_slice(body)
            .map_err(|error| self.invalid(format!("not the expected response: {error}")))
    }

    /// Reads a body up to the bound.
    pub(crate) async fn body(&self, mut response: Response) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if body.len() + bytes.len() > self.max_response {
                return Err(self.invalid(format!("the response is larger than {} bytes", self.max_response)));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    /// Returns the response if it is successful, else its problem.
    pub(crate) async fn checked(&self, response: Response) -> Result<Response, Error> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let location = response.headers().get(header::LOCATION).filter(|_| status.is_redirection());
        let location = location.and_then(|location| Url::parse(location.to_str().ok()?).ok());
        let problem = match location {
            Some(location) => {
                let detail = format!("{status}: the server is at {}; use that address", shown(&location));
                Problem::new(Code::Other("redirected".into()), detail)
            }
            None => {
                let wait = retry_after(response.headers());
                problem(status, wait, &self.body(response).await.unwrap_or_default())
            }
        };
        Err(Error::refused(self.shown.to_string(), problem))
    }

    pub(crate) fn unreachable(&self, error: &reqwest::Error) -> Error {
        let mut cause: &dyn Cause = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        Error::unreachable(self.shown.to_string(), cause.to_string())
    }

    /// Returns the error of a connection that was lost.
    pub(crate) fn lost(&self, why: &str) -> Error {
        Error::unreachable(self.shown.to_string(), why)
    }

    pub(crate) fn invalid(&self, reason: String) -> Error {
        Error::invalid(self.shown.to_string(), reason)
    }
}

/// Returns the problem of a response, which a proxy may have written. `wait` is what its headers
/// ask for.
fn problem(status: StatusCode, wait: Option<Duration>, body: &[u8]) -> Problem {
    let mut problem: Problem = serde_json::from_slice(body).unwrap_or_else(|_| {
        let detail = format!("{status}; the answer is not from a Mainstem server");
        let mut problem = Problem::new(Code::Other("http".into()), detail);
        problem.status = status.as_u16();
        problem.title = status.canonical_reason().unwrap_or("Error").to_owned();
        problem
    });
    if let Some(wait) = wait {
        let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        problem.more.entry("retry_after_ms").or_insert_with(|| ms.into());
    }
    problem
}

/// Returns the text of an invalid address, in which a password can't be found.
fn named(address: &str) -> &str {
    if address.contains('@') { "the address" } else { address }
}

/// Returns an address without user, password and query, which may be secrets.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    url.as_str().trim_end_matches('/').to_owned()
}

fn invalid(place: &str, error: impl std::fmt::Display) -> Error {
    Error::invalid(place, error.to_string())
}
