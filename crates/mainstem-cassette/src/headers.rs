//! The headers that are recorded (an allowlist, so that secrets are not written), and those that
//! are not forwarded.

use std::collections::BTreeMap;

use hyper::{HeaderMap, header};

/// Of requests: those that select a form of an API.
const REQUEST_HEADERS: [&str; 5] =
    ["content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta"];

/// Of responses: those that a client uses, or that a report to the vendor cites.
const RESPONSE_HEADERS: [&str; 12] = [
    "content-type",
    "content-encoding",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "request-id",
    "x-request-id",
    "cf-ray",
    "openai-version",
    "openai-model",
    "openai-processing-ms",
    "anthropic-fast-mode",
];

/// Of responses, by prefix: what is left of a quota.
const RATE_LIMIT_PREFIXES: [&str; 4] =
    ["x-ratelimit-", "ratelimit", "anthropic-ratelimit-", "anthropic-priority-"];

/// Of requests: hop-by-hop headers (RFC 9110, 7.6.1), and `accept-encoding`, so that the response
/// is readable.
const HOP_BY_HOP: [header::HeaderName; 11] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::ACCEPT_ENCODING,
    header::EXPECT,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::PROXY_AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
];

pub(super) fn of_request(headers: &HeaderMap) -> BTreeMap<String, String> {
    listed(headers, |name| REQUEST_HEADERS.contains(&name))
}

pub(super) fn of_response(headers: &HeaderMap) -> BTreeMap<String, String> {
    listed(headers, |name| {
        RESPONSE_HEADERS.contains(&name) || RATE_LIMIT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    })
}

fn listed(headers: &HeaderMap, may: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let listed = headers.iter().filter(|(name, _)| may(name.as_str()));
    listed.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned()))).collect()
}

/// Returns the headers for the vendor.
pub(super) fn forwarded(mut headers: HeaderMap) -> HeaderMap {
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers
}
