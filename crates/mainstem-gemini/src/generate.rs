//! `streamGenerateContent`, at Google, in Vertex AI and behind gateways.

use std::sync::Arc;

use mainstem_http::{
    Api, Decode, Endpoint, Form, ListedModel, ModelPage, Server, Service, Url, Variables, extend,
};
use mainstem_model::ModelRequest;
use serde_json::Value;

use crate::{decoder::Decoder, request};

/// A model behind the Gemini API, by default at `https://generativelanguage.googleapis.com`.
///
/// A base URL is the part before `/v1beta/models/…`, or, if the server has another version or a
/// longer path, the URL with these, up to `/models/…`. The key is sent as `x-goog-api-key`;
/// [`with_auth_token`](Endpoint::with_auth_token) is for Vertex AI.
///
/// ```
/// use mainstem_gemini::Gemini;
/// use mainstem_model::Model;
///
/// let model = Gemini::new("gemini-2.5-flash").with_api_key("the key");
/// assert_eq!(model.name(), "gemini-2.5-flash");
/// // Or with the variables of the environment; an error names the one that is missing.
/// let model = Gemini::from_env("gemini-2.5-flash");
/// # let _ = model;
/// ```
pub type Gemini = Endpoint<GenerateContent>;

/// The [Gemini API](https://ai.google.dev/api/generate-content).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GenerateContent;

const VARIABLES: Variables = Variables {
    other_key: Some("GOOGLE_API_KEY"),
    // Google's own libraries read this one.
    other_base_url: Some("GOOGLE_GEMINI_BASE_URL"),
    ..Variables::new("GEMINI_API_KEY", "GEMINI_BASE_URL")
};

impl Api for GenerateContent {
    const SERVICE: Service =
        Service::new("gcp.gemini", "https://generativelanguage.googleapis.com", VARIABLES)
            .with_key_hosts(&["generativelanguage.googleapis.com"])
            .with_key_header("x-goog-api-key");
    const RESPONSE_NOUN: &'static str = "Gemini response";
    const FORM: Form = Form::Events;

    type Dialect = ();

    /// Returns `{base}/v1beta/models/{model}:streamGenerateContent?alt=sse`. A base URL with a
    /// version in its path gets no other, and a model's name that is a path (`tunedModels/mine`) no
    /// `models/` before it.
    fn url(base: &Url, model: &str) -> Url {
        let mut url = versioned(base);
        let method = format!("{model}:streamGenerateContent");
        let path =
            if model.contains('/') { "" } else { "models/" }.split_terminator('/').chain(method.split('/'));
        extend(&mut url, &path.collect::<Vec<_>>());
        url.query_pairs_mut().append_pair("alt", "sse");
        url
    }

    fn models_url(base: &Url) -> Option<Url> {
        let mut url = versioned(base);
        extend(&mut url, &["models"]);
        url.query_pairs_mut().append_pair("pageSize", "1000");
        Some(url)
    }

    /// Reads a [page](https://ai.google.dev/api/models#method:-models.list); models that do not
    /// generate content are left out.
    fn models_page(page: &Value) -> Option<ModelPage> {
        let entries = page.get("models")?.as_array()?;
        let generates = |entry: &&Value| {
            let methods = entry["supportedGenerationMethods"].as_array();
            methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"))
        };
        let read = |entry: &Value| {
            let read = ListedModel::read(entry, "name", &["inputTokenLimit"], &["outputTokenLimit"]);
            read.map(|mut model| {
                model.id = model.id.trim_start_matches("models/").to_owned();
                model
            })
        };
        let token = page.get("nextPageToken").and_then(Value::as_str).filter(|token| !token.is_empty());
        let next = token.map(|token| ("pageToken", token.to_owned()));
        Some(ModelPage { models: entries.iter().filter(generates).filter_map(read).collect(), next })
    }

    fn body(&self, model: &str, request: &ModelRequest, (): &()) -> Result<Vec<u8>, String> {
        request::body(model, request)
    }

    fn decoder(server: Arc<Server>) -> impl Decode {
        Decoder::new(server)
    }
}

/// Returns the base URL with the version of the API, unless it has one.
fn versioned(base: &Url) -> Url {
    let mut url = base.clone();
    if !base.path().split('/').any(is_version) {
        extend(&mut url, &["v1beta"]);
    }
    url
}

/// Returns `true` for `v1`, `v1beta`, `v1beta1`, `v2alpha`.
fn is_version(segment: &str) -> bool {
    let Some(rest) = segment.strip_prefix('v') else { return false };
    let word = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let stage = word.trim_end_matches(|c: char| c.is_ascii_digit());
    word.len() < rest.len() && matches!(stage, "" | "alpha" | "beta")
}

#[cfg(test)]
mod tests;
