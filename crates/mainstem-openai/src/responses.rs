//! The model behind the Responses API, as a value.

mod decoder;
mod dialect;
mod event;
mod kept;
mod request;

use std::sync::{Arc, Mutex};

use mainstem_http::{Exchange, Http, Server};
use mainstem_model::{Model, ModelRequest, ModelStream};

use self::{
    decoder::{Decoder, RESPONSES},
    dialect::Dialect,
};
use crate::{
    open::open,
    server::{is_openai, openai_responses, responses},
    settings::settings,
};

/// A model behind the [Responses API]. Clones share connections, and what was found out about the server.
///
/// The vendor stores nothing (`store: false`): each request holds the whole conversation, with the model's encrypted reasoning. Azure's
/// `…/openai/v1` addresses are base URLs like others: use [`with_base_url`](Self::with_base_url).
///
/// Dropping a stream of it closes the connection, so that no further token is paid for.
///
/// [Responses API]: https://platform.openai.com/docs/api-reference/responses
#[derive(Clone)]
pub struct OpenAiResponses {
    name: Arc<str>,
    server: Arc<Server>,
    http: Arc<Http>,
    /// Why answers shall come in one piece.
    whole: Option<Arc<str>>,
    /// Unless it goes by the server.
    holds_schema: Option<bool>,
    dialect: Arc<Mutex<Dialect>>,
}

impl OpenAiResponses {
    /// A model of `https://api.openai.com/v1`. Reads nothing from the environment.
    pub fn new(model: impl Into<Arc<str>>) -> Self {
        Self::at(model.into(), openai_responses())
    }

    fn at(name: Arc<str>, server: Server) -> Self {
        let (server, http, dialect) = (Arc::new(server), Arc::default(), Arc::default());
        Self { name, server, http, whole: None, holds_schema: None, dialect }
    }
}

settings!(OpenAiResponses, Dialect, responses);

impl Model for OpenAiResponses {
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
            let learn = |dialect: &Dialect| model.learn(&dialect.lasting());
            open(&model.http, &model.server, &RESPONSES, model.dialect(), body, learn).await
        }))
    }
}

#[cfg(test)]
mod tests;
