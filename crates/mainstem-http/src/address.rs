//! From what people write to the URL of an endpoint.

use std::sync::Arc;

use reqwest::Url;

use crate::ConfigError;

/// A base URL as people write it.
///
/// # Errors
/// It is no http(s) URL; the error shows it without user and password.
pub fn parse(text: &str) -> Result<Url, ConfigError> {
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

/// Adds segments to a path; a trailing slash does no harm.
pub fn extend(url: &mut Url, segments: &[&str]) {
    // An http URL always has a path to extend.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
}

/// Host and port.
pub(crate) fn host(url: &Url) -> Arc<str> {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.into(), |port| format!("{host}:{port}").into())
}

#[cfg(test)]
mod tests;
