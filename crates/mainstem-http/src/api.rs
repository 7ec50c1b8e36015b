//! What a provider declares about its vendor's API; the [`Endpoint`](crate::Endpoint) does the
//! rest.

use std::{fmt, sync::Arc};

use mainstem_model::ModelRequest;
use reqwest::Url;
use serde_json::Value;

use crate::{ConfigError, Decode, ModelPage, Server, ServerError, Service, parse};

/// One API of a vendor: its addresses, its requests, and its responses.
///
/// A value of it holds the settings that only this API has.
pub trait Api: Clone + Default + fmt::Debug + Send + Sync + 'static {
    /// The vendor's own service.
    const SERVICE: Service;

    /// The vendor's noun for a response, for messages: `chat completion`.
    const RESPONSE_NOUN: &'static str;

    /// The form of a streamed response.
    const FORM: Form;

    /// The known deviations of servers from the API; `()` for an API that all servers follow.
    type Dialect: Dialect;

    /// Parses a base URL.
    ///
    /// # Errors
    /// If it is not an http(s) URL.
    fn base_url(text: &str) -> Result<Url, ConfigError> {
        parse(text)
    }

    /// Returns the URL for requests to a model.
    fn url(base: &Url, model: &str) -> Url;

    /// Returns the URL of the list of models; `None` if the API has none.
    fn models_url(_base: &Url) -> Option<Url> {
        None
    }

    /// Reads a page of the list of models; `None` if it is not one.
    fn models_page(_page: &Value) -> Option<ModelPage> {
        None
    }

    /// Writes the body of a request.
    ///
    /// # Errors
    /// If the conversation holds something that the API has no form for. The text continues after
    /// the server's name.
    fn body(&self, model: &str, request: &ModelRequest, dialect: &Self::Dialect) -> Result<Vec<u8>, String>;

    /// Returns the decoder of one response of this server.
    fn decoder(server: Arc<Server>) -> impl Decode;

    /// Returns why the response comes in one piece, if [`body`](Self::body) requests that.
    fn whole(&self, _request: &ModelRequest, _dialect: &Self::Dialect) -> Option<Arc<str>> {
        None
    }

    /// Returns `true` if the server enforces a JSON schema in its response; see
    /// [`Model::can_enforce_schema`](mainstem_model::Model::can_enforce_schema).
    fn can_enforce_schema(&self, _model: &str, _server: &Server, _request: &ModelRequest) -> bool {
        false
    }

    /// Returns advice about an error, which is appended to the server's text.
    fn advice(_model: &str, _server: &Server, _error: &ServerError) -> Option<String> {
        None
    }
}

/// Deviations of a server or a model from its API, learned from its errors.
pub trait Dialect: Clone + Default + fmt::Debug + Send + Sync + 'static {
    /// Returns the known deviations of a service, or of a host, before the first request.
    fn of(_service: &Service, _host: &str) -> Self {
        Self::default()
    }

    /// Returns the dialect that avoids an error; `None` if there is none, so that the call fails
    /// with the error.
    fn adapted_to(&self, error: &ServerError) -> Option<Self>;

    /// Returns the part that applies to later requests, too.
    #[must_use]
    fn lasting(&self) -> Self {
        self.clone()
    }
}

/// Every error ends the call.
impl Dialect for () {
    fn adapted_to(&self, _: &ServerError) -> Option<Self> {
        None
    }
}

/// The form of a streamed response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the two that there are")]
pub enum Form {
    /// As server-sent events.
    Events,
    /// As lines of JSON.
    Lines,
}

impl Form {
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        }
    }
}
