//! The model as a value.

use std::{
    env, fmt,
    sync::{Arc, Mutex, PoisonError},
};

use mainstem_http::{Client, ConfigError, Exchange, Http, SecretString, Server, trimmed};
use mainstem_model::{Model, ModelRequest, ModelStream};

use crate::{
    decoder::Decoder,
    dialect::Dialect,
    open::open,
    server::{azure, chat, is_openai, openai},
};

/// A model behind the chat completions API. Clones share connections, and what was found out about the server.
///
/// Dropping a stream of it closes the connection, so that no further token is paid for.
#[derive(Clone)]
pub struct OpenAi {
    name: Arc<str>,
    pub(crate) server: Arc<Server>,
    pub(crate) http: Arc<Http>,
    /// Why answers shall come in one piece.
    whole: Option<Arc<str>>,
    /// Unless it goes by the server.
    holds_schema: Option<bool>,
    dialect: Arc<Mutex<Dialect>>,
}

impl OpenAi {
    /// A model of `https://api.openai.com/v1`. Reads nothing from the environment.
    pub fn new(model: impl Into<Arc<str>>) -> Self {
        Self::at(model.into(), openai())
    }

    /// A deployment in Azure: `{endpoint}/openai/deployments/{deployment}`. The key is sent as `api-key`; for a token of Entra ID
    /// set the header `authorization` instead.
    ///
    /// Azure's newer `…/openai/v1` addresses are plain base URLs: for these, use [`with_base_url`](Self::with_base_url).
    ///
    /// # Errors
    /// Where the endpoint is no http(s) URL.
    pub fn azure(endpoint: &str, deployment: &str, api_version: &str) -> Result<Self, ConfigError> {
        azure(endpoint, deployment, api_version).map(|server| Self::at(deployment.into(), server))
    }

    /// The same as [`new`](Self::new), with what OpenAI's own libraries read from the environment: `OPENAI_API_KEY`,
    /// `OPENAI_BASE_URL`, `OPENAI_ORG_ID` and `OPENAI_PROJECT_ID`.
    ///
    /// # Errors
    /// Without a key, unless the base URL names another server than OpenAI's; and where a value cannot be used.
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
        let mut openai = Self::new(model);
        if let Some(url) = var("OPENAI_BASE_URL") {
            openai = openai.with_base_url(&url)?;
        }
        if let Some(organization) = var("OPENAI_ORG_ID") {
            openai = openai.with_organization(&organization)?;
        }
        if let Some(project) = var("OPENAI_PROJECT_ID") {
            openai = openai.with_project(&project)?;
        }
        match var("OPENAI_API_KEY") {
            Some(key) => Ok(openai.with_api_key(key)),
            None if is_openai(&openai.server) => {
                Err(ConfigError::NoKey { variable: "OPENAI_API_KEY", instead: Some("OPENAI_BASE_URL") })
            }
            None => Ok(openai),
        }
    }

    fn at(name: Arc<str>, server: Server) -> Self {
        let dialect = Dialect { completion_tokens: is_openai(&server), ..Dialect::default() };
        let (server, http, dialect) = (Arc::new(server), Arc::default(), Arc::new(Mutex::new(dialect)));
        Self { name, server, http, whole: None, holds_schema: None, dialect }
    }

    /// Another model of the same server, with the same key, over the same connections.
    #[must_use]
    pub fn with_model(self, model: impl Into<Arc<str>>) -> Self {
        let Self { server, http, whole, holds_schema, .. } = self;
        let fresh = Self::at(model.into(), (*server).clone());
        Self { server, http, whole, holds_schema, ..fresh }
    }

    /// The key. It is never shown, and taken out of what a server says about it.
    #[must_use]
    pub fn with_api_key(mut self, key: impl Into<SecretString>) -> Self {
        let auth = self.server.auth();
        Arc::make_mut(&mut self.server).set_key(key.into(), auth);
        self
    }

    /// Another server: the URL up to and with `/v1`. A trailing slash is fine, and so is the address of the whole endpoint.
    ///
    /// # Errors
    /// Where it is no http(s) URL.
    pub fn with_base_url(self, url: &str) -> Result<Self, ConfigError> {
        let Self { name, server, http, whole, holds_schema, .. } = self;
        let mut server = (*server).clone();
        server.set_url(chat(url)?);
        Ok(Self { http, whole, holds_schema, ..Self::at(name, server) })
    }

    /// A header of every request; one named `authorization` replaces the key. Values are never shown.
    ///
    /// # Errors
    /// Where HTTP does not allow the name or the value.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, ConfigError> {
        Arc::make_mut(&mut self.server).set_header(name, value)?;
        Ok(self)
    }

    /// The organization that pays.
    ///
    /// # Errors
    /// Where HTTP does not allow the value.
    pub fn with_organization(self, organization: &str) -> Result<Self, ConfigError> {
        self.with_header("openai-organization", organization)
    }

    /// The project that pays.
    ///
    /// # Errors
    /// Where HTTP does not allow the value.
    pub fn with_project(self, project: &str) -> Result<Self, ConfigError> {
        self.with_header("openai-project", project)
    }

    /// Sends requests through a client of one's own: for a proxy, certificates, a limit. Ours connects within 10 s, sets
    /// `TCP_NODELAY`, follows no redirects and asks for no compression, which would hold deltas back.
    #[must_use]
    pub fn with_client(mut self, client: Client) -> Self {
        self.http = Arc::new(Http::with(client));
        self
    }

    /// Whether the server holds answers to a `response_format` of type `json_schema`, besides tools. OpenAI does; of others it is not assumed,
    /// and a form is asked for as the arguments of a tool.
    #[must_use]
    pub fn with_json_schema(mut self, holds_schema: bool) -> Self {
        self.holds_schema = Some(holds_schema);
        self
    }

    /// Asks for answers in one piece, for a server that cannot stream. Each says so with the reason.
    #[must_use]
    pub fn without_streaming(mut self, reason: impl Into<Arc<str>>) -> Self {
        self.whole = Some(reason.into());
        self
    }

    /// What was set, and what was found out about the server so far.
    pub(crate) fn dialect(&self) -> Dialect {
        let learned = self.dialect.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Dialect { whole: self.whole.clone().or(learned.whole), ..learned }
    }

    pub(crate) fn learn(&self, dialect: &Dialect) {
        self.dialect.lock().unwrap_or_else(PoisonError::into_inner).clone_from(dialect);
    }
}

impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.name
    }

    fn holds_schema(&self, _: &ModelRequest) -> bool {
        self.holds_schema.unwrap_or_else(|| is_openai(&self.server))
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let decoder = Decoder::new(self.server.clone());
        Box::pin(Exchange::new(self.server.clone(), decoder, open(self.clone(), request)))
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi")
            .field("model", &self.name)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
