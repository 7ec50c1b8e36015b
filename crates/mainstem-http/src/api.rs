//! What a provider declares about its vendor's API; the [`Endpoint`](crate::Endpoint) does the
//! rest.

use std::{fmt, sync::Arc};

use mainstem_model::ModelRequest;
use reqwest::Url;

use crate::{Auth, ConfigError, Decode, Server, ServerError, parse};

/// One API of a vendor: its addresses, its requests, and its responses.
///
/// A value of it holds the settings that only this API has.
pub trait Api: Clone + Default + fmt::Debug + Send + Sync + 'static {
    /// The vendor's name for `gen_ai.provider.name`, as in OpenTelemetry's conventions.
    const PROVIDER: &'static str;

    /// The vendor's noun for a response, for messages: `chat completion`.
    const RESPONSE_NOUN: &'static str;

    /// The form of a streamed response.
    const FORM: Form;

    /// The base URL of an endpoint without one.
    const BASE_URL: &'static str;

    /// How a key is sent.
    const AUTH: Auth;

    /// The environment variables with settings.
    const VARIABLES: Variables;

    /// Headers of every request that the vendor's documentation prescribes, names in lower case.
    const HEADERS: &'static [(&'static str, &'static str)] = &[];

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

    /// Returns `true` if this is the host (and port) of the vendor's own service, which requires a
    /// key.
    fn is_key_required(host: &str) -> bool;

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
    /// Returns the known deviations of a host before the first request.
    fn of(_host: &str) -> Self {
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

/// The environment variables of an API.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a constant of each API")]
pub struct Variables {
    /// The key.
    pub key: &'static str,
    /// The base URL of a server other than the vendor's own.
    pub base_url: &'static str,
    /// The key if `key` is not set.
    pub other_key: Option<&'static str>,
    /// The base URL if `base_url` is not set.
    pub other_base_url: Option<&'static str>,
    /// A bearer token, used if both variables for a key are unset.
    pub token: Option<&'static str>,
    /// Headers: the variable with the value, and the name of the header.
    pub headers: &'static [(&'static str, &'static str)],
}

impl Variables {
    /// Declares a variable for the key and one for the base URL.
    pub const fn new(key: &'static str, base_url: &'static str) -> Self {
        Self { key, base_url, other_key: None, other_base_url: None, token: None, headers: &[] }
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
