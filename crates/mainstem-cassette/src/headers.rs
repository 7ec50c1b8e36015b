//! The headers that are recorded, and those that are forwarded. Lists of allowed ones, so that
//! secrets stay out.

use std::collections::BTreeMap;

use hyper::{HeaderMap, header};

/// Of requests: those that select a form of an API.
const ASKED: [&str; 5] = ["content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta"];

/// Of answers: those that a client uses, or a person quotes to a vendor.
const ANSWERED: [&str; 12] = [
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

/// Of answers, by prefix: the rest of a quota.
const LIMITS: [&str; 4] = ["x-ratelimit-", "ratelimit", "anthropic-ratelimit-", "anthropic-priority-"];

/// Of requests: those between two neighbours, and those that would compress the answer, which must
/// be readable.
const NOT_SENT_ON: [header::HeaderName; 11] = [
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
    listed(headers, |name| ASKED.contains(&name))
}

pub(super) fn of_answer(headers: &HeaderMap) -> BTreeMap<String, String> {
    listed(headers, |name| ANSWERED.contains(&name) || LIMITS.iter().any(|limit| name.starts_with(limit)))
}

fn listed(headers: &HeaderMap, may: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let listed = headers.iter().filter(|(name, _)| may(name.as_str()));
    listed.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned()))).collect()
}

/// Returns the headers for the vendor.
pub(super) fn sent_on(mut headers: HeaderMap) -> HeaderMap {
    for name in NOT_SENT_ON {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers
}
