//! The time that a server asks to wait.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// The finer header of Azure and OpenAI.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// Returns `retry-after-ms`, or else `Retry-After` ([RFC 9110, 10.2.3]) in seconds or as a date.
///
/// A date is relative to the server's own `Date`, so that the clock of this machine does not
/// matter; without `Date` it is ignored.
///
/// [RFC 9110, 10.2.3]: https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name, unit: f64| {
        let number: f64 = headers.get(name)?.to_str().ok()?.trim().parse().ok()?;
        Duration::try_from_secs_f64(number * unit).ok()
    };
    let date = |name| httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok();
    let until = || date(RETRY_AFTER)?.duration_since(date(DATE)?).ok();
    number(RETRY_AFTER_MS, 0.001).or_else(|| number(RETRY_AFTER, 1.0)).or_else(until)
}

#[cfg(test)]
mod tests;
