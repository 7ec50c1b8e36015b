//! Secrets, and how they are removed from a tape.

use std::fmt;

use hyper::HeaderMap;
use mainstem_http::Url;
use serde_json::Value;

use super::exchange::{Body, Chunk, Exchange, TapeRequest, TapeResponse};

/// The replacement of a secret.
pub(super) const REDACTED: &str = "[redacted]";

/// The length of the shortest key that is searched in texts: local servers accept any key, and
/// replacing `ollama` everywhere would garble texts.
const SHORTEST_KEY: usize = 8;

/// Words in the names of headers with secrets.
const HEADERS: [&str; 7] = ["auth", "key", "token", "secret", "cookie", "password", "credential"];

/// Query parameters with secrets.
const PARAMETERS: [&str; 13] = [
    "key",
    "api_key",
    "api-key",
    "apikey",
    "access_token",
    "token",
    "sig",
    "signature",
    "secret",
    "password",
    "x-amz-signature",
    "x-amz-security-token",
    "x-amz-credential",
];

/// The secrets, in every encoding in which they may occur; the longest first.
#[derive(Clone, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// Adds a value as it is, in JSON, in JSON in JSON (arguments of calls), and in a URL.
    pub(super) fn add(&mut self, secret: &str) {
        let once = in_json(secret);
        let forms = [secret.to_owned(), in_json(&once), once, in_url(secret)];
        for form in forms.into_iter().filter(|form| !form.is_empty()) {
            if !self.0.contains(&form) {
                self.0.push(form);
            }
        }
        self.0.sort_by_key(|form| std::cmp::Reverse(form.len()));
    }

    /// Adds the secrets of a request.
    pub(super) fn learn(&mut self, headers: &HeaderMap, url: &Url) {
        let is_secret = |name: &str| HEADERS.iter().any(|word| name.contains(word));
        let headers = headers.iter().filter(|(name, _)| is_secret(name.as_str()));
        // `Bearer …`, and cookies: `a=…; b=…`.
        let values = headers
            .filter_map(|(_, value)| value.to_str().ok())
            .flat_map(|value| value.split([' ', ';', ',']));
        let values = values.flat_map(|value| [value, value.split_once('=').map_or("", |(_, value)| value)]);
        let query = url.query_pairs().filter(|(name, _)| is_parameter(name));
        for secret in values.map(str::to_owned).chain(query.map(|(_, value)| value.into_owned())) {
            if secret.len() >= SHORTEST_KEY {
                self.add(&secret);
            }
        }
    }

    /// Returns the number of encoded secrets.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes secrets from a request: from the query by name, elsewhere by value.
    pub(super) fn redact_request(&self, requested: &mut TapeRequest) {
        if let Some((path, query)) = requested.path.split_once('?') {
            let hide = |parameter: &str| match parameter.split_once('=') {
                Some((name, _)) if is_parameter(name) => format!("{name}={REDACTED}"),
                _ => parameter.to_owned(),
            };
            requested.path = format!("{path}?{}", query.split('&').map(hide).collect::<Vec<_>>().join("&"));
        }
        self.redact_text(&mut requested.path);
        requested.headers.values_mut().for_each(|value| self.redact_text(value));
        match &mut requested.body {
            Some(Body::Json(value)) => self.redact_value(value),
            Some(Body::Text(text)) => self.redact_text(text),
            Some(Body::Base64(_)) | None => {}
        }
    }

    /// Removes secrets from a response, also across chunks: the first of them gets the replacement.
    pub(super) fn redact_response(&self, response: &mut TapeResponse) {
        response.headers.values_mut().for_each(|value| self.redact_text(value));
        let body = response.body();
        let found = self.find(&body);
        if !found.is_empty() {
            response.chunks = cut_out(std::mem::take(&mut response.chunks), &found);
        }
    }

    pub(super) fn redact_text(&self, text: &mut String) {
        let found = self.find(text.as_bytes());
        for (start, end) in found.into_iter().rev() {
            text.replace_range(start..end, REDACTED);
        }
    }

    fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(map) => {
                for (mut key, mut value) in std::mem::take(map) {
                    self.redact_text(&mut key);
                    self.redact_value(&mut value);
                    map.insert(key, value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns `true` if a line to be written, or the text that it encodes, has a secret.
    pub(super) fn are_in(&self, exchange: &Exchange, line: &str) -> bool {
        let requested = exchange.request.body.as_ref().map(Body::hidden).unwrap_or_default();
        [line.as_bytes(), &exchange.response.body(), &requested]
            .iter()
            .any(|bytes| !self.find(bytes).is_empty())
    }

    /// Returns the places of secrets: start and end, in order, without overlaps.
    fn find(&self, bytes: &[u8]) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut at = 0;
        while !self.0.is_empty() && at < bytes.len() {
            match self.0.iter().find(|secret| bytes[at..].starts_with(secret.as_bytes())) {
                Some(secret) => {
                    found.push((at, at + secret.len()));
                    at += secret.len();
                }
                None => at += 1,
            }
        }
        found
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

/// Returns the chunks without these places of all of them together. A chunk that becomes empty is
/// removed, and its time added to the next.
fn cut_out(chunks: Vec<Chunk>, found: &[(usize, usize)]) -> Vec<Chunk> {
    let mut left: Vec<Chunk> = Vec::new();
    let (mut start, mut waits) = (0, 0);
    for chunk in chunks {
        let bytes = without(&chunk.bytes, start, found);
        start += chunk.bytes.len();
        waits += chunk.ms;
        if !bytes.is_empty() || chunk.bytes.is_empty() {
            left.push(Chunk { ms: std::mem::take(&mut waits), bytes });
        }
    }
    left
}

/// Returns a chunk that begins at `start`, without these places.
fn without(bytes: &[u8], start: usize, found: &[(usize, usize)]) -> Vec<u8> {
    let end = start + bytes.len();
    let (mut kept, mut at) = (Vec::new(), start);
    for &(from, to) in found.iter().filter(|(from, to)| *from < end && *to > start) {
        if from >= start {
            kept.extend_from_slice(&bytes[at - start..from - start]);
            kept.extend_from_slice(REDACTED.as_bytes());
        }
        at = to.min(end);
    }
    kept.extend_from_slice(&bytes[at - start..]);
    kept
}

fn is_parameter(name: &str) -> bool {
    PARAMETERS.contains(&&*name.to_ascii_lowercase())
}

/// Encodes a text as JSON, without the quotes.
fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn in_url(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let escaped = |byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escaped).collect()
}

#[cfg(test)]
mod tests;
