//! The Responses API.

mod background;
mod decoder;
mod dialect;
mod event;
mod opaque;
mod request;

use std::sync::Arc;

use mainstem_http::{Api, Decode, Endpoint, Form, ModelPage, Server, Service, Url};
use mainstem_model::ModelRequest;
use serde_json::Value;

use self::{decoder::Decoder, dialect::Dialect};
use crate::{
    models,
    service::OPENAI,
    settings::{Settings, below},
};

/// A model behind the Responses API, by default at `https://api.openai.com/v1`.
///
/// The vendor stores nothing (`store: false`): each request holds the whole conversation, with the
/// model's encrypted reasoning. With [`OnCut::Resume`] it stores each response, and an answer that
/// is cut is read on. A base URL ends with `/v1`, such as Azure's `…/openai/v1`; the URL
/// of the whole endpoint is accepted, too. [`OpenAiExt`](crate::OpenAiExt) has further settings.
///
/// ```
/// use mainstem_openai::OpenAiResponses;
/// use mainstem_model::Model;
///
/// let model = OpenAiResponses::new("gpt-5").with_api_key("the key");
/// assert_eq!(model.name(), "gpt-5");
/// // Or with the variables of the environment; an error names the one that is missing.
/// let model = OpenAiResponses::from_env("gpt-5");
/// # let _ = model;
/// ```
///
/// [`OnCut::Resume`]: mainstem_model::OnCut::Resume
pub type OpenAiResponses = Endpoint<Responses>;

/// The [Responses API](https://platform.openai.com/docs/api-reference/responses).
#[derive(Clone, Debug, Default)]
pub struct Responses(pub(crate) Settings);

impl Api for Responses {
    const SERVICE: Service = OPENAI;
    const RESPONSE_NOUN: &'static str = "response";
    const FORM: Form = Form::Events;

    type Dialect = Dialect;

    fn url(base: &Url, _: &str) -> Url {
        below(base, &["responses"])
    }

    fn models_url(base: &Url) -> Option<Url> {
        Some(below(base, &["models"]))
    }

    fn models_page(page: &Value) -> Option<ModelPage> {
        models::page(page)
    }

    fn body(&self, model: &str, request: &ModelRequest, dialect: &Dialect) -> Result<Vec<u8>, String> {
        let dialect = Dialect { whole: self.whole(request, dialect), ..dialect.clone() };
        request::body(model, request, &dialect)
    }

    fn decoder(server: Arc<Server>) -> impl Decode {
        Decoder::new(server)
    }

    fn whole(&self, _: &ModelRequest, dialect: &Dialect) -> Option<Arc<str>> {
        self.0.whole.clone().or_else(|| dialect.whole.clone())
    }

    fn can_enforce_schema(&self, _: &str, server: &Server, _: &ModelRequest) -> bool {
        self.0.can_enforce_schema(server)
    }
}

#[cfg(test)]
mod tests;
