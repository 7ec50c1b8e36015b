//! Chat completions, of OpenAI and of the many servers that speak them.

use std::sync::Arc;

use mainstem_http::{
    Api, ConfigError, Decode, Endpoint, Form, ModelPage, Server, Service, Url, extend, parse,
};
use mainstem_model::ModelRequest;
use serde_json::Value;

use crate::{
    decoder::Decoder,
    dialect::Dialect,
    models, request,
    service::OPENAI,
    settings::{Settings, below},
};

/// A model behind the chat completions API, by default at `https://api.openai.com/v1`.
///
/// A base URL ends with `/v1`; the URL of the whole endpoint is accepted, too.
/// [`OpenAiExt`](crate::OpenAiExt) has further settings.
///
/// ```
/// use mainstem_openai::OpenAi;
/// use mainstem_model::Model;
///
/// let model = OpenAi::new("gpt-4o-mini").with_api_key("the key");
/// assert_eq!(model.name(), "gpt-4o-mini");
/// // Or with the variables of the environment; an error names the one that is missing.
/// let model = OpenAi::from_env("gpt-4o-mini");
/// # let _ = model;
/// ```
pub type OpenAi = Endpoint<ChatCompletions>;

/// The [chat completions API](https://platform.openai.com/docs/api-reference/chat).
#[derive(Clone, Debug, Default)]
pub struct ChatCompletions(pub(crate) Settings);

/// Creates a deployment in Azure: `{endpoint}/openai/deployments/{deployment}`. The key is sent as
/// `api-key`, a token of Entra ID as a bearer token.
///
/// This is for the dated versions of Azure's API. Its newer one, at `…/openai/v1`, is the service
/// [`AZURE`](crate::service::AZURE).
///
/// # Errors
/// If the endpoint is not an http(s) URL.
pub fn azure(endpoint: &str, deployment: &str, api_version: &str) -> Result<OpenAi, ConfigError> {
    let mut base = parse(endpoint)?;
    extend(&mut base, &["openai", "deployments", deployment]);
    base.query_pairs_mut().append_pair("api-version", api_version);
    Ok(OpenAi::new(deployment).with_base_url(base.as_str())?.with_key_header("api-key"))
}

impl Api for ChatCompletions {
    const SERVICE: Service = OPENAI;
    const RESPONSE_NOUN: &'static str = "chat completion";
    const FORM: Form = Form::Events;

    type Dialect = Dialect;

    fn url(base: &Url, _: &str) -> Url {
        below(base, &["chat", "completions"])
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
