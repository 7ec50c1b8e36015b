//! Limits as buckets that fill with time. Pure.

use std::time::Duration;

use mainstem_message::Allowance;
use tokio::time::Instant;

/// The time in which a limit without a reset time is assumed to be available again, and in which a
/// call without a response is taken into account.
pub(super) const MINUTE: Duration = Duration::from_secs(60);

/// The maximum time until a limit is available again, and of a pause; longer ones are reduced to
/// it.
pub(super) const LONGEST_RESET: Duration = Duration::from_secs(24 * 60 * 60);

/// A limit as the service reported it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported {
    pub(super) allowance: Allowance,
    pub(super) at: Instant,
    /// The call with whose response it came; the service had counted the calls before.
    pub(super) by: u64,
}

impl Reported {
    fn resets_in(&self) -> Duration {
        self.allowance.reset_ms.map_or(MINUTE, Duration::from_millis).min(LONGEST_RESET)
    }

    /// Returns when there is room for a call besides others: at once if there is enough. Services
    /// add to a limit continuously (a token bucket); one whose whole limit is unknown adds at the
    /// end. A call that needs more than the limit is sent when all of it is available.
    pub(super) fn available_at(&self, need: u64, others: u64) -> Instant {
        let Allowance { limit, remaining, .. } = self.allowance;
        let missing = need.min(limit.unwrap_or(u64::MAX)).saturating_add(others).saturating_sub(remaining);
        if missing == 0 {
            return self.at;
        }
        let Some(limit) = limit else { return self.at + self.resets_in() };
        let (added, time) = match limit.saturating_sub(remaining) {
            0 => (limit.max(1), MINUTE),
            added => (added, self.resets_in()),
        };
        let wait = time.as_secs_f64() * (missing as f64 / added as f64);
        self.at + Duration::try_from_secs_f64(wait).unwrap_or(LONGEST_RESET).min(LONGEST_RESET)
    }
}

/// A limit a minute, as a bucket that fills continuously.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quota {
    per_minute: u64,
    /// What was in the bucket at that time; below zero if calls took more than there was.
    level: f64,
    at: Instant,
}

impl Quota {
    /// Creates a full bucket.
    pub(super) fn full(per_minute: u64, now: Instant) -> Self {
        Self { per_minute, level: per_minute as f64, at: now }
    }

    /// Returns the bucket with another limit.
    pub(super) fn with_rate(self, per_minute: u64) -> Self {
        Self { per_minute, ..self }
    }

    fn level(&self, now: Instant) -> f64 {
        let filled = now.saturating_duration_since(self.at).as_secs_f64() / MINUTE.as_secs_f64();
        (self.level + filled * self.per_minute as f64).min(self.per_minute as f64)
    }

    /// Takes what a call needs, and gives back what it was thought to need. Each counts as what ten
    /// minutes add at most: others wait no longer for one call.
    pub(super) fn take(&mut self, amount: f64, given_back: f64, now: Instant) {
        let most = 10.0 * self.per_minute as f64;
        (self.level, self.at) = (self.level(now) - amount.min(most) + given_back.min(most), now);
    }

    pub(super) fn available_at(&self, need: u64, now: Instant) -> Instant {
        let missing = (need.min(self.per_minute) as f64 - self.level(now)).max(0.0);
        now + MINUTE.mul_f64(missing / self.per_minute.max(1) as f64)
    }
}
