//! The headers with which services report limits on the rate of calls.

use std::time::{Duration, SystemTime};

use mainstem_model::message::{Allowance, RateLimit, RateLimits};
use reqwest::header::{DATE, HeaderMap};

/// From here on, a number of seconds is a time since the epoch; a thousand times that, of
/// milliseconds.
const EPOCH: Duration = Duration::from_secs(1_000_000_000);

/// Returns the limits that the head of a response reports. Invalid values are left out.
///
/// * OpenAI, and most services with its APIs:
///   `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, with resets such as `6m0s`; Azure
///   leaves out the resets
///   (<https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers>)
/// * Anthropic:
///   `anthropic-ratelimit-{requests,input-tokens,output-tokens}-{limit,remaining,reset}`, with
///   resets as dates (<https://docs.anthropic.com/en/api/rate-limits#response-headers>)
/// * Together: `x-ratelimit-{limit,remaining,reset}` of requests, `x-tokenlimit-{limit,remaining}`
pub(crate) fn rate_limits(headers: &HeaderMap) -> RateLimits {
    let openai = |what| allowance(headers, |part| format!("x-ratelimit-{part}-{what}"));
    let anthropic = |what| allowance(headers, |part| format!("anthropic-ratelimit-{what}-{part}"));
    let together = |what| allowance(headers, |part| format!("x-{what}-{part}"));
    let mut limits = RateLimits::default();
    limits.requests = openai("requests").or_else(|| anthropic("requests")).or_else(|| together("ratelimit"));
    limits.tokens = openai("tokens").or_else(|| together("tokenlimit"));
    limits.input_tokens = anthropic("input-tokens");
    limits.output_tokens = anthropic("output-tokens");
    limits
}

/// Returns how long to wait until the exhausted limits allow a call; `None` if none is exhausted.
pub(crate) fn exhausted_for(limits: &RateLimits) -> Option<Duration> {
    let exhausted = limits.iter().filter(|(_, allowance)| allowance.remaining == 0);
    let wait = |(limit, allowance): (RateLimit, Allowance)| match (limit, allowance.limit) {
        // One request is available before all are.
        (RateLimit::Requests, Some(limit)) => Some(allowance.reset_ms? / limit.max(1)),
        _ => allowance.reset_ms,
    };
    exhausted.filter_map(wait).max().map(Duration::from_millis)
}

fn allowance(headers: &HeaderMap, name: impl Fn(&str) -> String) -> Option<Allowance> {
    let text = |part| headers.get(name(part))?.to_str().ok();
    let number = |part| text(part)?.trim().parse().ok();
    let reset = text("reset").and_then(|reset| time_until(reset.trim(), headers));
    let reset_ms = reset.and_then(|reset| u64::try_from(reset.as_millis()).ok());
    Some(Allowance::new(number("remaining")?).with_limit(number("limit")).with_reset_ms(reset_ms))
}

/// Returns the time until a reset: a duration, or a time relative to the server's own, as a date or
/// since the epoch.
fn time_until(reset: &str, headers: &HeaderMap) -> Option<Duration> {
    let at = match duration(reset) {
        Some(time) if time < EPOCH => return Some(time),
        Some(time) if time < EPOCH * 1_000 => SystemTime::UNIX_EPOCH.checked_add(time)?,
        Some(time) => SystemTime::UNIX_EPOCH.checked_add(time / 1_000)?,
        None => humantime::parse_rfc3339(reset).ok()?,
    };
    let now = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(at.duration_since(now).unwrap_or_default())
}

/// Parses a duration as Go writes it, such as `1h2m3.5s`, or a number of seconds.
fn duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic())?);
        let (unit, after) =
            after.split_at(after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len()));
        let unit = match unit {
            "d" => 86_400.0,
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            "us" => 0.000_001,
            "ns" => 0.000_000_001,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * unit;
        rest = after;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests;
