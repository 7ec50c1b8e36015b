//! From what people write to the URL of the endpoint.

use std::sync::Arc;

use reqwest::Url;

use crate::ConfigError;

/// The endpoint below a base URL. A trailing slash does no harm, and neither does the whole endpoint, which people paste too.
pub(super) fn chat(base: &str) -> Result<Url, ConfigError> {
    let mut url = parse(base)?;
    if !url.path().trim_end_matches('/').ends_with("/chat/completions") {
        extend(&mut url, &["chat", "completions"]);
    }
    Ok(url)
}

/// The endpoint of a deployment in Azure.
pub(super) fn azure(endpoint: &str, deployment: &str, api_version: &str) -> Result<Url, ConfigError> {
    let mut url = parse(endpoint)?;
    extend(&mut url, &["openai", "deployments", deployment, "chat", "completions"]);
    url.query_pairs_mut().append_pair("api-version", api_version);
    Ok(url)
}

/// Host and port.
pub(super) fn host(url: &Url) -> Arc<str> {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.into(), |port| format!("{host}:{port}").into())
}

fn parse(text: &str) -> Result<Url, ConfigError> {
    // What stands before an `@` may be a password.
    let shown = text.rsplit('@').next().unwrap_or_default();
    let wrong = |problem: String| ConfigError::BaseUrl { url: shown.to_owned(), problem };
    let text = text.trim();
    if !text.starts_with("http://") && !text.starts_with("https://") {
        let rest = shown.trim().rsplit("//").next().unwrap_or_default();
        return Err(wrong(format!("it must begin with http:// or https://, such as \"http://{rest}\"")));
    }
    Url::parse(text).map_err(|error| wrong(error.to_string()))
}

fn extend(url: &mut Url, segments: &[&str]) {
    // An http URL always has a path to extend.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
}
