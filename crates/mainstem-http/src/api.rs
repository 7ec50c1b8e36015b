//! What a provider says about its vendor's API; the [`Endpoint`](crate::Endpoint) does the rest.

use std::{fmt, sync::Arc};

use mainstem_model::ModelRequest;
use reqwest::Url;

use crate::{Auth, Complaint, ConfigError, Decode, Server, parse};

/// One API of a vendor: where it is, what a request to it looks like, and what its answers mean.
///
/// A value of it holds the settings that only this API has.
pub trait Api: Clone + Default + fmt::Debug + Send + Sync + 'static {
    /// The vendor, as OpenTelemetry's conventions name it in `gen_ai.provider.name`.
    const PROVIDER: &'static str;

    /// The vendor's noun for an answer, for messages: `chat completion`.
    const ANSWER: &'static str;

    /// How an answer streams.
    const FORM: Form;

    /// The base URL of an endpoint that is given none.
    const BASE_URL: &'static str;

    /// How a key is sent.
    const AUTH: Auth;

    /// The settings that the environment holds.
    const VARIABLES: Variables;

    /// Headers of every request that the vendor's documentation prescribes, names in lower case.
    const HEADERS: &'static [(&'static str, &'static str)] = &[];

    /// In what a server may differ from the API; `()` if nothing is known.
    type Dialect: Dialect;

    /// Reads a base URL as people write it.
    ///
    /// # Errors
    /// If it is not an http(s) URL.
    fn base_url(text: &str) -> Result<Url, ConfigError> {
        parse(text)
    }

    /// Returns the address that requests to a model are sent to.
    fn url(base: &Url, model: &str) -> Url;

    /// Returns `true` if this is the host (and port) of the vendor's own service, which requires a
    /// key.
    fn is_key_required(host: &str) -> bool;

    /// Writes the body of a request.
    ///
    /// # Errors
    /// The conversation holds what the API has no form for. The text goes on after the server's
    /// name.
    fn body(&self, model: &str, request: &ModelRequest, dialect: &Self::Dialect) -> Result<Vec<u8>, String>;

    /// Returns the decoder of one answer of this server.
    fn decoder(server: Arc<Server>) -> impl Decode;

    /// Returns why an answer comes in one piece, if that is what [`body`](Self::body) asks for.
    fn whole(&self, _request: &ModelRequest, _dialect: &Self::Dialect) -> Option<Arc<str>> {
        None
    }

    /// Returns `true` if the server holds its answer to a JSON schema; see
    /// [`Model::can_enforce_schema`](mainstem_model::Model::can_enforce_schema).
    fn can_enforce_schema(&self, _model: &str, _server: &Server, _request: &ModelRequest) -> bool {
        false
    }

    /// Returns what helps against a refusal, to be said behind the server's words.
    fn advice(_model: &str, _server: &Server, _complaint: &Complaint) -> Option<String> {
        None
    }
}

/// In what a server or a model differs from its API, found by what it complains about.
pub trait Dialect: Clone + Default + fmt::Debug + Send + Sync + 'static {
    /// Returns what is known about a host before the first request.
    fn of(_host: &str) -> Self {
        Self::default()
    }

    /// Returns the dialect that heeds a complaint; `None` if there is nothing (more) to heed, and
    /// the complaint is the answer.
    fn heeding(&self, complaint: &Complaint) -> Option<Self>;

    /// Returns the part that holds for later requests, too.
    #[must_use]
    fn lasting(&self) -> Self {
        self.clone()
    }
}

/// Every complaint is the answer.
impl Dialect for () {
    fn heeding(&self, _: &Complaint) -> Option<Self> {
        None
    }
}

/// The environment variables of an API.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a constant of each API")]
pub struct Variables {
    /// Holds the key.
    pub key: &'static str,
    /// Names another server than the vendor's own.
    pub base_url: &'static str,
    /// Holds the key if `key` is not set.
    pub other_key: Option<&'static str>,
    /// Names the server if `base_url` is not set.
    pub other_base_url: Option<&'static str>,
    /// Holds a bearer token, for want of a key.
    pub token: Option<&'static str>,
    /// Hold the values of headers: the variable, and the name of the header.
    pub headers: &'static [(&'static str, &'static str)],
}

impl Variables {
    /// Creates a variable for the key and one for the base URL.
    pub const fn new(key: &'static str, base_url: &'static str) -> Self {
        Self { key, base_url, other_key: None, other_base_url: None, token: None, headers: &[] }
    }
}

/// How an API streams.
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
