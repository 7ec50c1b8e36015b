//! The model behind chat completions, as a value.

use std::sync::{Arc, Mutex};

use mainstem_http::{ConfigError, Exchange, Http, Server};
use mainstem_model::{Model, ModelRequest, ModelStream};

use crate::{
    decoder::{CHAT, Decoder},
    dialect::Dialect,
    open::open,
    request,
    server::{azure, chat, is_openai, openai},
    settings::settings,
};

/// A model behind the chat completions API. Clones share connections, and what was found out about the server.
///
/// Dropping a stream of it closes the connection, so that no further token is paid for.
#[derive(Clone)]
pub struct OpenAi {
    name: Arc<str>,
    pub(crate) server: Arc<Server>,
    http: Arc<Http>,
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

    fn at(name: Arc<str>, server: Server) -> Self {
        let dialect = Dialect { completion_tokens: is_openai(&server), ..Dialect::default() };
        let (server, http, dialect) = (Arc::new(server), Arc::default(), Arc::new(Mutex::new(dialect)));
        Self { name, server, http, whole: None, holds_schema: None, dialect }
    }
}

settings!(OpenAi, Dialect, chat);

impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> Option<&str> {
        Some("openai")
    }

    fn holds_schema(&self, _: &ModelRequest) -> bool {
        self.holds_schema.unwrap_or_else(|| is_openai(&self.server))
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let (model, server) = (self.clone(), self.server.clone());
        let decoder = Decoder::new(server.clone());
        Box::pin(Exchange::new(server, decoder, async move {
            let body = |dialect: &Dialect| request::body(&model, &request, dialect);
            let learn = |dialect: &Dialect| model.learn(dialect);
            open(&model.http, &model.server, &CHAT, model.dialect(), body, learn).await
        }))
    }
}

#[cfg(test)]
mod tests;
