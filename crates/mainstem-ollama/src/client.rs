//! The model as a value.

use std::{env, fmt, sync::Arc};

use mainstem_http::{Client, ConfigError, Exchange, Http, SecretString, Server, trimmed};
use mainstem_model::{Model, ModelRequest, ModelStream};

use crate::{
    decoder::Decoder,
    host::{chat, is_cloud, local},
    open::open,
};

/// A model that Ollama runs. Clones share connections.
///
/// Dropping a stream of it closes the connection, which makes Ollama stop.
#[derive(Clone)]
pub struct Ollama {
    name: Arc<str>,
    pub(crate) server: Arc<Server>,
    pub(crate) http: Arc<Http>,
    pub(crate) num_ctx: Option<u32>,
}

impl Ollama {
    /// A model of the Ollama on this machine, `http://127.0.0.1:11434`. Reads nothing from the environment.
    pub fn new(model: impl Into<Arc<str>>) -> Self {
        Self { name: model.into(), server: Arc::new(local()), http: Arc::default(), num_ctx: None }
    }

    /// The same as [`new`](Self::new), with what Ollama's own clients read from the environment: `OLLAMA_HOST`, see
    /// [`with_base_url`](Self::with_base_url), and `OLLAMA_API_KEY`, which goes to whichever host that is.
    ///
    /// # Errors
    /// Where the host cannot be used, and without a key for `ollama.com`.
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
        let mut ollama = Self::new(model);
        if let Some(host) = var("OLLAMA_HOST") {
            ollama = ollama.with_base_url(&host)?;
        }
        match var("OLLAMA_API_KEY") {
            Some(key) => Ok(ollama.with_api_key(key)),
            None if is_cloud(&ollama.server) => {
                Err(ConfigError::NoKey { variable: "OLLAMA_API_KEY", instead: Some("OLLAMA_HOST") })
            }
            None => Ok(ollama),
        }
    }

    /// Another model of the same server, with the same key and settings, over the same connections.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Arc<str>>) -> Self {
        self.name = model.into();
        self
    }

    /// The key, for [`ollama.com`](https://docs.ollama.com/api/authentication) or a proxy that wants one as a bearer token. It is never
    /// shown, and taken out of what a server says about it.
    #[must_use]
    pub fn with_api_key(mut self, key: impl Into<SecretString>) -> Self {
        let auth = self.server.auth();
        Arc::make_mut(&mut self.server).set_key(key.into(), auth);
        self
    }

    /// Another server, as `OLLAMA_HOST` names one: a host (`gpu-box`), a port (`:1234`), both, or a URL, perhaps with a path. Without a
    /// scheme it is `http` and port 11434, except for `ollama.com`; with one, the port is that of the scheme. `0.0.0.0`, where servers
    /// listen, means this machine.
    ///
    /// # Errors
    /// Where that makes no http(s) URL.
    pub fn with_base_url(mut self, host: &str) -> Result<Self, ConfigError> {
        Arc::make_mut(&mut self.server).set_url(chat(host)?);
        Ok(self)
    }

    /// A header of every request; one named `authorization` replaces the key. Values are never shown.
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

    /// How many tokens of a conversation the model holds, its answer included: the option `num_ctx`. Ollama's
    /// [default](https://docs.ollama.com/context-length) is small, and it drops what does not fit without a word. More takes more memory,
    /// and a model that was loaded for another number is loaded again.
    #[must_use]
    pub fn with_num_ctx(mut self, tokens: u32) -> Self {
        self.num_ctx = Some(tokens);
        self
    }

    /// Whether another machine runs the model: the service itself, or Ollama in its name.
    fn is_cloud(&self) -> bool {
        is_cloud(&self.server) || self.name.ends_with("-cloud") || self.name.ends_with(":cloud")
    }
}

impl Model for Ollama {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> Option<&str> {
        Some("ollama")
    }

    /// Beside tools, a schema [keeps the model from calling any](https://github.com/ollama/ollama/issues/8095), and models in the cloud
    /// [hold none](https://docs.ollama.com/capabilities/structured-outputs).
    fn holds_schema(&self, request: &ModelRequest) -> bool {
        request.tools.is_empty() && !self.is_cloud()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let decoder = Decoder::new(self.server.clone());
        Box::pin(Exchange::new(self.server.clone(), decoder, open(self.clone(), request)))
    }
}

impl fmt::Debug for Ollama {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ollama")
            .field("model", &self.name)
            .field("server", &self.server)
            .field("num_ctx", &self.num_ctx)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
