//! Limits that the caller sets.

use std::time::Duration;

/// Limits that apply in addition to those that the service reports. A limit that is `None` does not
/// apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RatePolicy {
    /// The maximum number of calls that begin in a minute.
    pub requests_per_minute: Option<u64>,
    /// The maximum number of tokens in a minute, of prompts and answers. Those of a call are
    /// estimated when it begins, and counted when it has ended.
    pub tokens_per_minute: Option<u64>,
    /// The maximum number of calls at the same time. An answer that its caller neither reads nor
    /// drops counts.
    pub calls: Option<u32>,
    /// The longest wait that a service may demand. If it demands more when it refuses a call, calls
    /// fail until then, except for one in each `max_wait`, which ends the pause if it succeeds. If
    /// its reported limits demand more, a call is sent anyway.
    pub max_wait: Duration,
}

impl Default for RatePolicy {
    /// No limits, and waits of up to two minutes.
    fn default() -> Self {
        Self {
            requests_per_minute: None,
            tokens_per_minute: None,
            calls: None,
            max_wait: Duration::from_secs(120),
        }
    }
}
