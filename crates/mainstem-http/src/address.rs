//! Parses the base URLs that people write.

use std::sync::Arc;

use reqwest::Url;

use crate::ConfigError;

/// Parses a base URL.
///
/// # Errors
/// If the text is not a URL with the scheme `http` or `https`; the error shows it without user,
/// password and query.
pub fn parse(text: &str) -> Result<Url, ConfigError> {
    let shown = shown(text);
    let wrong = |problem: String| ConfigError::BaseUrl { url: shown.clone(), problem };
    let text = text.trim();
    if !text.starts_with("http://") && !text.starts_with("https://") {
        let rest = shown.trim().rsplit("//").next().unwrap_or_default();
        return Err(wrong(format!("it must begin with http:// or https://, such as \"http://{rest}\"")));
    }
    Url::parse(text).map_err(|error| wrong(error.to_string()))
}

/// Returns the part of a supposed URL that may be shown: without user and password, and up to the
/// end of the path.
fn shown(text: &str) -> String {
    let text = text.trim();
    let (start, rest) = text.split_at(text.find("://").map_or(0, |at| at + "://".len()));
    let authority = rest.find(['/', '?', '#']).map_or(rest, |end| &rest[..end]);
    let host = authority.rsplit('@').next().unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) || port.ends_with(']');
    if !is_port && rest.contains('@') {
        // The password has an invalid character, so its end is unknown.
        return format!("{start}…");
    }
    let behind = &rest[authority.len()..];
    format!("{start}{host}{}", behind.split(['?', '#']).next().unwrap_or_default())
}

/// Adds segments to a path; a trailing slash is fine.
pub fn extend(url: &mut Url, segments: &[&str]) {
    // An http URL always has a path to extend.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
}

/// Returns host and port.
pub(crate) fn host(url: &Url) -> Arc<str> {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.into(), |port| format!("{host}:{port}").into())
}

#[cfg(test)]
mod tests;
