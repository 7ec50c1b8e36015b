//! The model as a value.

use std::{
    env, fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use mainstem_http::{Auth, Client, ConfigError, Exchange, Http, SecretString, Server, trimmed};
use mainstem_model::{Model, ModelRequest, ModelStream};

use crate::{
    decoder::Decoder,
    dialect::Dialect,
    open::open,
    server::{API_KEY, anthropic, is_anthropic, messages},
};

/// A model behind the Messages API. Clones share connections, and what was found out about the model.
///
/// Dropping a stream of it closes the connection, so that no further token is paid for.
#[derive(Clone)]
pub struct Anthropic {
    name: Arc<str>,
    pub(crate) server: Arc<Server>,
    pub(crate) http: Arc<Http>,
    pub(crate) caching: bool,
    no_sampling: Arc<AtomicBool>,
}

impl Anthropic {
    /// A model of `https://api.anthropic.com`. Reads nothing from the environment.
    pub fn new(model: impl Into<Arc<str>>) -> Self {
        let (name, server) = (model.into(), Arc::new(anthropic()));
        Self { name, server, http: Arc::default(), caching: false, no_sampling: Arc::default() }
    }

    /// The same as [`new`](Self::new), with what [Anthropic's own libraries] read from the environment: `ANTHROPIC_BASE_URL`, and
    /// `ANTHROPIC_API_KEY` or, without it, `ANTHROPIC_AUTH_TOKEN`.
    ///
    /// [Anthropic's own libraries]: https://platform.claude.com/docs/en/api/sdks/python
    ///
    /// # Errors
    /// Without a key or token, unless the base URL names another server than Anthropic's; and where a value cannot be used.
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
        let mut anthropic = Self::new(model);
        if let Some(url) = var("ANTHROPIC_BASE_URL") {
            anthropic = anthropic.with_base_url(&url)?;
        }
        match (var("ANTHROPIC_API_KEY"), var("ANTHROPIC_AUTH_TOKEN")) {
            (Some(key), _) => Ok(anthropic.with_api_key(key)),
            (None, Some(token)) => Ok(anthropic.with_auth_token(token)),
            (None, None) if is_anthropic(&anthropic.server) => {
                Err(ConfigError::NoKey { variable: "ANTHROPIC_API_KEY", instead: Some("ANTHROPIC_BASE_URL") })
            }
            (None, None) => Ok(anthropic),
        }
    }

    /// Another model of the same server, with the same key, over the same connections.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Arc<str>>) -> Self {
        (self.name, self.no_sampling) = (model.into(), Arc::default());
        self
    }

    /// The key, sent as `x-api-key`. It is never shown, and taken out of what a server says about it.
    #[must_use]
    pub fn with_api_key(mut self, key: impl Into<SecretString>) -> Self {
        Arc::make_mut(&mut self.server).set_key(key.into(), API_KEY);
        self
    }

    /// A token in place of the key, sent as `Authorization: Bearer …`. It is never shown either.
    #[must_use]
    pub fn with_auth_token(mut self, token: impl Into<SecretString>) -> Self {
        Arc::make_mut(&mut self.server).set_key(token.into(), Auth::Bearer);
        self
    }

    /// Another server: the URL up to `/v1`. With `/v1` or a trailing slash is fine, and so is the address of the whole endpoint.
    ///
    /// # Errors
    /// Where it is no http(s) URL.
    pub fn with_base_url(mut self, url: &str) -> Result<Self, ConfigError> {
        Arc::make_mut(&mut self.server).set_url(messages(url)?);
        self.no_sampling = Arc::default();
        Ok(self)
    }

    /// A header of every request, such as `anthropic-beta`; one that carries the key replaces it. Values are never shown.
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

    /// Has each conversation cached up to its end, in the vendor's [automatic] form: reading it again costs a tenth, writing it a
    /// quarter more. Worth it for an agent that goes on; not for a single question.
    ///
    /// [automatic]: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
    #[must_use]
    pub fn with_prompt_caching(mut self) -> Self {
        self.caching = true;
        self
    }

    /// What was found out about the model so far.
    pub(crate) fn dialect(&self) -> Dialect {
        Dialect { no_sampling: self.no_sampling.load(Ordering::Relaxed) }
    }

    pub(crate) fn learn_no_sampling(&self) {
        self.no_sampling.store(true, Ordering::Relaxed);
    }
}

impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> Option<&str> {
        Some("anthropic")
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let decoder = Decoder::new(self.server.clone());
        Box::pin(Exchange::new(self.server.clone(), decoder, open(self.clone(), request)))
    }
}

impl fmt::Debug for Anthropic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Anthropic")
            .field("model", &self.name)
            .field("server", &self.server)
            .field("caching", &self.caching)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
