//! Which headers get onto a tape, and which are sent on. Lists of what may, so that nothing secret
//! slips through.

use std::collections::BTreeMap;

use hyper::{HeaderMap, header};

/// Of requests: what says which form of an API is meant.
const ASKED: [&str; 5] = ["content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta"];

/// Of answers: what a client acts upon, or a person asks a vendor about.
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

/// Of answers, by how they begin: what is left of the quota.
const LIMITS: [&str; 4] = ["x-ratelimit-", "ratelimit", "anthropic-ratelimit-", "anthropic-priority-"];

/// Of requests, what is between two neighbours, or what would compress the answer, which must be
/// readable.
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

/// Returns what the vendor gets.
pub(super) fn sent_on(mut headers: HeaderMap) -> HeaderMap {
    for name in NOT_SENT_ON {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers
}
