//! The seam to the HTTP stack: a client, one request, and its errors.

use std::{
    error::Error,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use mainstem_model::{ErrorKind, ModelError};
use mainstem_outbound::shared;
use reqwest::{
    Client, Response,
    header::{ACCEPT, CONTENT_TYPE, HeaderValue},
};

use crate::Server;

/// In order of preference.
const ACCEPTED: &str = "text/event-stream, application/json";

/// The bytes of a response as they arrive.
pub(crate) type Body = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>;

/// The HTTP client for requests.
///
/// The default one is that which all models of a tokio runtime share, with its connections. It is
/// built by the first request, so that a failure to build it is that request's error. Any other is
/// made [from](From) a client of reqwest.
#[derive(Clone, Debug)]
pub struct HttpClient(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Own(Client),
    /// Holds the client that was used last, which ends with its holders.
    Shared(Arc<Mutex<Option<Arc<Client>>>>),
}

impl Default for HttpClient {
    fn default() -> Self {
        Self(Kind::Shared(Arc::default()))
    }
}

impl From<Client> for HttpClient {
    fn from(client: Client) -> Self {
        Self(Kind::Own(client))
    }
}

impl HttpClient {
    fn client(&self) -> reqwest::Result<Client> {
        match &self.0 {
            Kind::Own(client) => Ok(client.clone()),
            Kind::Shared(held) => {
                let client = shared()?;
                let used = Client::clone(&client);
                *held.lock().unwrap_or_else(PoisonError::into_inner) = Some(client);
                Ok(used)
            }
        }
    }

    /// Sends a request and waits for the head of its response.
    pub(crate) async fn post(&self, server: &Server, body: Vec<u8>) -> Result<Response, ModelError> {
        let client = self.client().map_err(|error| failure(server, error))?;
        let request = client
            .post(server.url().clone())
            .header(ACCEPT, HeaderValue::from_static(ACCEPTED))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .headers(server.headers()?)
            .body(body);
        request.send().await.map_err(|error| failure(server, error))
    }

    /// Asks for a document, whose body must have arrived within this time, and waits for the head
    /// of the response.
    pub(crate) async fn get(&self, server: &Server, limit: Duration) -> Result<Response, ModelError> {
        let client = self.client().map_err(|error| failure(server, error))?;
        let request = client
            .get(server.url().clone())
            .timeout(limit)
            .header(ACCEPT, HeaderValue::from_static("application/json"))
            .headers(server.headers()?);
        request.send().await.map_err(|error| failure(server, error))
    }
}

/// Returns the failure of a connection, with advice.
pub(crate) fn failure(server: &Server, error: reqwest::Error) -> ModelError {
    let (kind, cause) =
        (if error.is_timeout() { ErrorKind::Timeout } else { ErrorKind::Transport }, root(&error));
    let what = if error.is_builder() {
        format!("can't be asked: {cause}")
    } else if error.is_connect() {
        format!("can't be reached: {cause}; {}", server.advice())
    } else if error.is_body() || error.is_decode() {
        format!("was cut off before its answer was complete: {cause}")
    } else {
        format!("did not answer: {cause}")
    };
    server.error(kind, &what).with_source(error.without_url())
}

/// Returns the innermost cause: the outer ones only say that something failed.
fn root(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    match error.to_string() {
        cause if cause.starts_with("failed to lookup address") => "its name can't be resolved".to_owned(),
        cause => cause,
    }
}
