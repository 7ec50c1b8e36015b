//! The model as a value.

use std::{env, fmt, sync::Arc};

use mainstem_http::{
    Answer, Api, Client, ConfigError, Exchange, Form, Http, SecretString, Server, Url, ask, begin, parse,
    trimmed,
};
use mainstem_model::{Model, ModelError, ModelRequest, ModelStream};

use crate::{
    decoder::Decoder,
    request,
    server::{endpoint, google, is_google, server},
};

pub(crate) const GENERATE: Api = Api { answer: "Gemini response", form: Form::Events };

/// A model behind the Gemini API. Clones share connections.
///
/// Dropping a stream of it closes the connection, so that no further token is paid for.
#[derive(Clone)]
pub struct Gemini {
    name: Arc<str>,
    base: Url,
    pub(crate) server: Arc<Server>,
    http: Arc<Http>,
}

impl Gemini {
    /// A model of `https://generativelanguage.googleapis.com`. Reads nothing from the environment.
    pub fn new(model: impl Into<Arc<str>>) -> Self {
        let (name, base) = (model.into(), google());
        Self { server: Arc::new(server(&base, &name)), name, base, http: Arc::default() }
    }

    /// The same as [`new`](Self::new), with the key in `GEMINI_API_KEY`, else in `GOOGLE_API_KEY`, and the base URL in
    /// `GEMINI_BASE_URL`, else in `GOOGLE_GEMINI_BASE_URL`, which Google's own libraries read.
    ///
    /// # Errors
    /// Without a key, unless the base URL names another server than Google's; and where a value cannot be used.
    pub fn from_env(model: impl Into<Arc<str>>) -> Result<Self, ConfigError> {
        Self::from_vars(model, |name| env::var(name).ok())
    }

    /// The same with variables from elsewhere, such as a program's own configuration.
    ///
    /// # Errors
    /// The same as for [`from_env`](Self::from_env).
    pub fn from_vars(
        model: impl Into<Arc<str>>,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let var = |name| trimmed(&var, name);
        let mut gemini = Self::new(model);
        if let Some(url) = var("GEMINI_BASE_URL").or_else(|| var("GOOGLE_GEMINI_BASE_URL")) {
            gemini = gemini.with_base_url(&url)?;
        }
        match var("GEMINI_API_KEY").or_else(|| var("GOOGLE_API_KEY")) {
            Some(key) => Ok(gemini.with_api_key(key)),
            None if is_google(&gemini.server) => {
                Err(ConfigError::NoKey { variable: "GEMINI_API_KEY", instead: Some("GEMINI_BASE_URL") })
            }
            None => Ok(gemini),
        }
    }

    /// Another model of the same server, with the same key, over the same connections.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Arc<str>>) -> Self {
        self.name = model.into();
        self.moved()
    }

    /// The key, sent as `x-goog-api-key`. It is never shown, and taken out of what a server says about it.
    #[must_use]
    pub fn with_api_key(mut self, key: impl Into<SecretString>) -> Self {
        let auth = self.server.auth();
        Arc::make_mut(&mut self.server).set_key(key.into(), auth);
        self
    }

    /// Another server: the URL that `/v1beta/models/…` is below, or, where the server has another version or a longer path, the URL
    /// with these, up to `/models/…`. A trailing slash is fine.
    ///
    /// # Errors
    /// Where it is no http(s) URL.
    pub fn with_base_url(mut self, url: &str) -> Result<Self, ConfigError> {
        self.base = parse(url)?;
        Ok(self.moved())
    }

    /// A header of every request; one named `x-goog-api-key` replaces the key. Values are never shown.
    ///
    /// # Errors
    /// Where HTTP does not allow the name or the value.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, ConfigError> {
        Arc::make_mut(&mut self.server).set_header(name, value)?;
        Ok(self)
    }

    /// Sends requests through a client of one's own: for a proxy, certificates, a limit. Ours connects within 10 s, sets
    /// `TCP_NODELAY`, follows no redirects and asks for no compression, which would hold deltas back.
    #[must_use]
    pub fn with_client(mut self, client: Client) -> Self {
        self.http = Arc::new(Http::with(client));
        self
    }

    /// The model is part of the address.
    fn moved(mut self) -> Self {
        let endpoint = endpoint(&self.base, &self.name);
        Arc::make_mut(&mut self.server).set_url(endpoint);
        self
    }

    /// From a request to the beginning of an answer.
    async fn open(self, request: ModelRequest) -> Result<Answer, ModelError> {
        let body = request::body(&self, &request)?;
        match ask(&self.http, &self.server, body).await? {
            Ok(response) => begin(&self.server, response, None, &GENERATE).await,
            Err(refusal) => Err(refusal.into_error(&self.server)),
        }
    }
}

impl Model for Gemini {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> Option<&str> {
        Some("gcp.gemini")
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let decoder = Decoder::new(self.server.clone());
        Box::pin(Exchange::new(self.server.clone(), decoder, self.clone().open(request)))
    }
}

impl fmt::Debug for Gemini {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gemini")
            .field("model", &self.name)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
