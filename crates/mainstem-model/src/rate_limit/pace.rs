//! Decides when a call may be sent, from the limits and the calls before it. Pure.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use mainstem_message::{Allowance, RateLimit, RateLimits, Usage};
use tokio::time::Instant;

use super::RatePolicy;

/// The time in which a limit without a reset time is assumed to be available again, and in which a
/// call without a response is taken into account.
const MINUTE: Duration = Duration::from_secs(60);

/// The tokens of an answer, before any was counted.
const FIRST_OUTPUT: u64 = 500;

/// How many unanswered calls there may be before their number is unlimited again after a refusal.
const MANY: f64 = 64.0;

/// The longest time until a limit is available again that is believed.
const LONGEST_RESET: Duration = Duration::from_secs(24 * 60 * 60);

/// The pause after a refusal without a time to wait.
const PAUSE: Duration = Duration::from_secs(1);

/// What a call needs of each limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) input: u64,
    pub(super) output: u64,
}

impl Cost {
    fn of(self, limit: RateLimit) -> u64 {
        match limit {
            RateLimit::Tokens => self.input.saturating_add(self.output),
            RateLimit::InputTokens => self.input,
            RateLimit::OutputTokens => self.output,
            _ => 1,
        }
    }
}

/// Whether a call may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Go,
    /// A limit leaves no room for it until this time, or until another call has got further.
    Wait(RateLimit, Option<Instant>),
    /// The service accepts no call for this long.
    Fail(Duration),
}

/// The limits of a model at a service, and the calls in progress.
#[derive(Debug)]
pub(super) struct Pace {
    policy: RatePolicy,
    reported: BTreeMap<RateLimit, Reported>,
    /// The policy's limits a minute.
    quotas: BTreeMap<RateLimit, Quota>,
    /// Calls without a response so far, which the service's reports do not contain: the oldest
    /// first.
    unanswered: VecDeque<(u64, Instant, Cost)>,
    /// Calls in progress.
    calls: u32,
    /// How many calls were sent.
    sent: u64,
    paused_until: Option<Instant>,
    /// How many calls may be unanswered, after a refusal: each refusal halves it, and as many
    /// responses as it has calls add one (additive increase, multiplicative decrease).
    most_unanswered: Option<f64>,
    /// The average tokens of an answer.
    typical_output: u64,
}

/// A limit as the service reported it.
#[derive(Clone, Copy, Debug)]
struct Reported {
    allowance: Allowance,
    at: Instant,
}

impl Reported {
    fn resets_in(&self) -> Duration {
        self.allowance.reset_ms.map_or(MINUTE, Duration::from_millis).min(LONGEST_RESET)
    }

    /// Returns when this much of the limit is available; at once if there is enough. Services add
    /// to a limit continuously (a token bucket); one whose whole limit is unknown adds at the end.
    fn available_at(&self, need: u64) -> Instant {
        let Allowance { limit, remaining, .. } = self.allowance;
        let limit = limit.unwrap_or(u64::MAX);
        let missing = need.min(limit).saturating_sub(remaining);
        if missing == 0 {
            return self.at;
        }
        let part = if limit == u64::MAX { 1.0 } else { missing as f64 / (limit - remaining) as f64 };
        self.at + self.resets_in().mul_f64(part)
    }
}

/// A limit a minute, as a bucket that fills continuously.
#[derive(Clone, Copy, Debug)]
struct Quota {
    per_minute: u64,
    /// What was in the bucket at that time; below zero if calls used more than was estimated, but
    /// not below what ten minutes add.
    level: f64,
    at: Instant,
}

impl Quota {
    fn level(&self, now: Instant) -> f64 {
        let filled = now.saturating_duration_since(self.at).as_secs_f64() / MINUTE.as_secs_f64();
        (self.level + filled * self.per_minute as f64).min(self.per_minute as f64)
    }

    fn take(&mut self, amount: f64, now: Instant) {
        let least = -10.0 * self.per_minute as f64;
        (self.level, self.at) = ((self.level(now) - amount).max(least), now);
    }

    fn available_at(&self, need: u64, now: Instant) -> Instant {
        let missing = (need.min(self.per_minute) as f64 - self.level(now)).max(0.0);
        now + MINUTE.mul_f64(missing / self.per_minute.max(1) as f64)
    }
}

impl Pace {
    pub(super) fn new(policy: RatePolicy) -> Self {
        Self {
            policy,
            reported: BTreeMap::new(),
            quotas: BTreeMap::new(),
            unanswered: VecDeque::new(),
            calls: 0,
            sent: 0,
            paused_until: None,
            most_unanswered: None,
            typical_output: FIRST_OUTPUT,
        }
    }

    pub(super) fn set_policy(&mut self, policy: RatePolicy) {
        self.policy = policy;
    }

    /// Returns the average tokens of an answer.
    pub(super) fn typical_output(&self) -> u64 {
        self.typical_output
    }

    /// Decides about a call.
    pub(super) fn check(&mut self, cost: Cost, now: Instant) -> Verdict {
        while self
            .unanswered
            .front()
            .is_some_and(|(_, sent, _)| now.saturating_duration_since(*sent) > MINUTE)
        {
            self.unanswered.pop_front();
        }
        if let Some(until) = self.paused_until.filter(|until| *until > now) {
            let wait = until - now;
            let is_too_long = wait > self.policy.max_wait;
            return if is_too_long {
                Verdict::Fail(wait)
            } else {
                Verdict::Wait(RateLimit::Refusal, Some(until))
            };
        }
        if self.most_unanswered.is_some_and(|most| self.unanswered.len() as f64 >= most.floor()) {
            return Verdict::Wait(RateLimit::Refusal, None);
        }
        if self.policy.calls.is_some_and(|most| self.calls >= most.max(1)) {
            return Verdict::Wait(RateLimit::Calls, None);
        }
        let available = self.reported_at(cost, now).into_iter().chain(self.quotas_at(cost, now));
        match available.max_by_key(|(_, at)| *at).filter(|(_, at)| *at > now) {
            Some((limit, at)) => Verdict::Wait(limit, Some(at)),
            None => Verdict::Go,
        }
    }

    /// Returns when the reported limits have room for a call besides the unanswered ones. A wait
    /// that is too long is left to the service.
    fn reported_at(&self, cost: Cost, now: Instant) -> Vec<(RateLimit, Instant)> {
        let reported = self.reported.iter().map(|(limit, reported)| {
            let unanswered: u64 = self.unanswered.iter().map(|(.., cost)| cost.of(*limit)).sum();
            (*limit, reported.available_at(cost.of(*limit).saturating_add(unanswered)))
        });
        reported.filter(|(_, at)| at.saturating_duration_since(now) <= self.policy.max_wait).collect()
    }

    fn quotas_at(&self, cost: Cost, now: Instant) -> Vec<(RateLimit, Instant)> {
        let at = |(limit, per_minute)| {
            (limit, self.quota(limit, per_minute, now).available_at(cost.of(limit), now))
        };
        self.policy.per_minute().map(at).collect()
    }

    fn quota(&self, limit: RateLimit, per_minute: u64, now: Instant) -> Quota {
        let full = Quota { per_minute, level: per_minute as f64, at: now };
        self.quotas.get(&limit).map_or(full, |quota| Quota { per_minute, ..*quota })
    }

    /// Takes from the quotas; a negative amount gives back.
    fn take(&mut self, now: Instant, amount: impl Fn(RateLimit) -> f64) {
        for (limit, per_minute) in self.policy.per_minute() {
            let mut quota = self.quota(limit, per_minute, now);
            quota.take(amount(limit), now);
            self.quotas.insert(limit, quota);
        }
    }

    /// Counts a call that is sent; returns its number.
    pub(super) fn send(&mut self, cost: Cost, now: Instant) -> u64 {
        self.take(now, |limit| cost.of(limit) as f64);
        (self.sent, self.calls) = (self.sent + 1, self.calls + 1);
        self.unanswered.push_back((self.sent, now, cost));
        self.sent
    }

    /// Notes that the response to a call has begun, with what it reports.
    pub(super) fn answered(&mut self, call: u64, limits: &RateLimits, now: Instant) {
        self.forget(call);
        let increased = self.most_unanswered.map(|most| most + 1.0 / most);
        self.most_unanswered = increased.filter(|most| *most < MANY);
        self.reported
            .extend(limits.iter().map(|(limit, allowance)| (limit, Reported { allowance, at: now })));
    }

    /// Notes that the service refused a call for its rate.
    pub(super) fn refused(&mut self, call: u64, wait: Option<Duration>, now: Instant) {
        let most = self.most_unanswered.unwrap_or(self.unanswered.len() as f64);
        self.most_unanswered = Some((most / 2.0).max(1.0));
        self.forget(call);
        let until = now.checked_add(wait.unwrap_or(PAUSE)).unwrap_or(now + MINUTE);
        self.paused_until = self.paused_until.max(Some(until));
    }

    /// Notes that a call has ended, and what it used.
    pub(super) fn end(&mut self, call: u64, cost: Cost, usage: Option<Usage>, now: Instant) {
        self.forget(call);
        self.calls = self.calls.saturating_sub(1);
        let Some(usage) = usage.filter(|usage| usage.total_tokens() > 0) else { return };
        self.typical_output = (self.typical_output.saturating_mul(7).saturating_add(usage.output_tokens)) / 8;
        let used = Cost { input: usage.input_tokens, output: usage.output_tokens };
        self.take(now, |limit| used.of(limit) as f64 - cost.of(limit) as f64);
    }

    fn forget(&mut self, call: u64) {
        self.unanswered.retain(|(number, ..)| *number != call);
    }
}

impl RatePolicy {
    /// Returns the limits a minute.
    fn per_minute(&self) -> impl Iterator<Item = (RateLimit, u64)> + use<> {
        [(RateLimit::Requests, self.requests_per_minute), (RateLimit::Tokens, self.tokens_per_minute)]
            .into_iter()
            .filter_map(|(limit, per_minute)| Some((limit, per_minute?)))
    }
}

#[cfg(test)]
mod tests;
