//! `streamGenerateContent`, at Google, in Vertex AI and behind gateways.

use std::sync::Arc;

use mainstem_http::{Api, Decode, Endpoint, Form, Server, Service, Url, Variables, extend};
use mainstem_model::ModelRequest;

use crate::{decoder::Decoder, request};

/// A model behind the Gemini API, by default at `https://generativelanguage.googleapis.com`.
///
/// A base URL is the part before `/v1beta/models/…`, or, if the server has another version or a
/// longer path, the URL with these, up to `/models/…`. The key is sent as `x-goog-api-key`;
/// [`with_auth_token`](Endpoint::with_auth_token) is for Vertex AI.
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
        let mut url = base.clone();
        if !base.path().split('/').any(is_version) {
            extend(&mut url, &["v1beta"]);
        }
        let method = format!("{model}:streamGenerateContent");
        let path =
            if model.contains('/') { "" } else { "models/" }.split_terminator('/').chain(method.split('/'));
        extend(&mut url, &path.collect::<Vec<_>>());
        url.query_pairs_mut().append_pair("alt", "sse");
        url
    }

    fn body(&self, model: &str, request: &ModelRequest, (): &()) -> Result<Vec<u8>, String> {
        request::body(model, request)
    }

    fn decoder(server: Arc<Server>) -> impl Decode {
        Decoder::new(server)
    }
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
