//! The Messages API, of Anthropic and of the servers that speak it.

use std::sync::Arc;

use mainstem_http::{
    Api, Decode, Endpoint, Form, ListedModel, ModelPage, Server, Service, Url, Variables, extend,
};
use mainstem_model::ModelRequest;
use serde_json::Value;

use crate::{decoder::Decoder, dialect::Dialect, request};

/// A model behind the Messages API, by default at `https://api.anthropic.com`.
///
/// A base URL is the part before `/v1`; one with `/v1`, or the URL of the whole endpoint, is
/// accepted, too. The key is sent as `x-api-key`.
///
/// ```
/// use mainstem_anthropic::Anthropic;
/// use mainstem_model::Model;
///
/// let model = Anthropic::new("claude-haiku-4-5").with_api_key("the key");
/// assert_eq!(model.name(), "claude-haiku-4-5");
/// // Or with the variables of the environment; an error names the one that is missing.
/// let model = Anthropic::from_env("claude-haiku-4-5");
/// # let _ = model;
/// ```
pub type Anthropic = Endpoint<Messages>;

/// The [Messages API](https://platform.claude.com/docs/en/api/messages).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Messages;

const VARIABLES: Variables = Variables {
    token: Some("ANTHROPIC_AUTH_TOKEN"),
    ..Variables::new("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
};

impl Api for Messages {
    const SERVICE: Service = Service {
        headers: &[("anthropic-version", "2023-06-01")],
        ..Service::new("anthropic", "https://api.anthropic.com", VARIABLES)
            .with_key_hosts(&["api.anthropic.com"])
            .with_key_header("x-api-key")
    };
    const RESPONSE_NOUN: &'static str = "message of the Messages API";
    const FORM: Form = Form::Events;

    type Dialect = Dialect;

    fn url(base: &Url, _: &str) -> Url {
        let mut url = base.clone();
        let path = url.path().trim_end_matches('/').to_owned();
        if path.ends_with("/v1") {
            extend(&mut url, &["messages"]);
        } else if !path.ends_with("/v1/messages") {
            extend(&mut url, &["v1", "messages"]);
        }
        url
    }

    fn models_url(base: &Url) -> Option<Url> {
        let mut url = Self::url(base, "");
        url.path_segments_mut().ok()?.pop().push("models");
        url.query_pairs_mut().append_pair("limit", "1000");
        Some(url)
    }

    /// Reads a [page](https://platform.claude.com/docs/en/api/models/list).
    fn models_page(page: &Value) -> Option<ModelPage> {
        let entries = page.get("data")?.as_array()?;
        let read = |entry| ListedModel::read(entry, "id", &["max_input_tokens"], &["max_tokens"]);
        let last = page.get("last_id").and_then(Value::as_str).filter(|_| page["has_more"] == true);
        let next = last.map(|id| ("after_id", id.to_owned()));
        Some(ModelPage { models: entries.iter().filter_map(read).collect(), next })
    }

    fn body(&self, model: &str, request: &ModelRequest, dialect: &Dialect) -> Result<Vec<u8>, String> {
        request::body(model, request, dialect)
    }

    fn decoder(server: Arc<Server>) -> impl Decode {
        Decoder::new(server)
    }
}

#[cfg(test)]
mod tests;
