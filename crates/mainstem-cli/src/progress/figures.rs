//! Times and counts for people.

use mainstem::message::RateLimit;

/// Returns a time as `0.4s`, `12.3s`, `1m04s`, `2h05m`.
pub(crate) fn time(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..60 => format!("{seconds}.{}s", millis % 1000 / 100),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// Returns a time as `00:12`, `1:02:03`.
pub(crate) fn clock(millis: u64) -> String {
    let seconds = millis / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes:02}:{seconds:02}")
    }
}

/// Returns why a model call waits, as `waits for the rate limit of tokens, 1.5s, behind 2 calls`.
pub(crate) fn rate_limit(limit: RateLimit, wait_ms: Option<u64>, ahead: u32) -> String {
    let limit = match limit {
        RateLimit::Requests => " of requests",
        RateLimit::Tokens => " of tokens",
        RateLimit::InputTokens => " of input tokens",
        RateLimit::OutputTokens => " of output tokens",
        RateLimit::Calls => " of calls at once",
        _ => "",
    };
    let wait = wait_ms.map_or_else(String::new, |wait| format!(", {}", time(wait)));
    let behind = match ahead {
        0 => String::new(),
        1 => ", behind 1 call".to_owned(),
        _ => format!(", behind {ahead} calls"),
    };
    format!("waits for the rate limit{limit}{wait}{behind}")
}

/// Returns a count of tokens as `820 tok`, `14.2k tok`, `1.5M tok`.
pub(crate) fn tokens(count: u64) -> String {
    let (size, unit) = match count {
        0..1_000 => return format!("{count} tok"),
        1_000..999_950 => (1_000.0, "k"),
        _ => (1_000_000.0, "M"),
    };
    format!("{:.1}{unit} tok", count as f64 / size)
}

/// Returns millionths of a dollar as `$0`, `<$0.0001`, `$0.0042`, `$1.27`.
pub(crate) fn cost(micros: u64) -> String {
    let dollars = micros as f64 / 1e6;
    match micros {
        0 => "$0".to_owned(),
        1..100 => "<$0.0001".to_owned(),
        100..100_000 => format!("${dollars:.4}"),
        _ => format!("${dollars:.2}"),
    }
}

/// Returns a count with its noun: `1 agent`, `3 agents`.
pub(crate) fn agents(count: usize) -> String {
    format!("{count} agent{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
