//! Sources of time and ids, which tests replace.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::Timestamp;

/// A source of time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time, which need not be monotonic.
    fn now(&self) -> Timestamp;
}

/// A source of unique ids.
pub trait Ids: Send + Sync + 'static {
    /// Returns a new id that begins with `prefix`: `run-`, `agent:reviewer:`.
    fn next(&self, prefix: &str) -> String;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// Random ids: UUID version 7, which sort by time (RFC 9562).
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the machine")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(since.as_secs() * 1_000_000 + u64::from(since.subsec_micros()))
    }
}

impl Ids for RandomIds {
    fn next(&self, prefix: &str) -> String {
        [prefix, uuid::Uuid::now_v7().hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer())].concat()
    }
}

#[cfg(test)]
mod tests;
