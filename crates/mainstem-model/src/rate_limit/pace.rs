//! Decides when a call may be sent, from the limits and the calls before it. Pure.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use mainstem_message::{RateLimit, RateLimits, Usage};
use tokio::time::Instant;

use super::{
    RatePolicy,
    bucket::{LONGEST_RESET, MINUTE, Quota, Reported},
};

/// The tokens of an answer, before any was counted.
const FIRST_OUTPUT: u64 = 500;

/// How many unanswered calls there may be before their number is unlimited again after a refusal.
const MANY: f64 = 64.0;

/// The shortest pause after a refusal; it doubles with each further one in a row.
const PAUSE: Duration = Duration::from_millis(250);

/// The longest answer that counts for the average, in tokens.
const LARGEST_OUTPUT: u64 = 1_000_000;

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
    /// A limit leaves no room for it until this time, or until another call makes progress.
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
    /// Calls without a response so far, the oldest first.
    unanswered: VecDeque<Unanswered>,
    /// Calls in progress.
    calls: u32,
    /// How many calls were sent.
    sent: u64,
    paused_until: Option<Instant>,
    /// When the next call is sent during a pause that is too long to wait for.
    next_probe: Option<Instant>,
    /// The number of calls that were sent before the latest refusal of a series.
    sent_before_refusal: u64,
    /// Refusals in a row; those of calls that were sent together count as one.
    refusals: u32,
    /// How many calls may be unanswered, after a refusal: each refusal halves it, and as many
    /// responses as it has calls add one (additive increase, multiplicative decrease).
    most_unanswered: Option<f64>,
    /// The average tokens of an answer.
    typical_output: u64,
    /// The average part of a prompt that is not read from a cache: Anthropic counts this part only.
    uncached: f64,
}

/// A call without a response.
#[derive(Debug)]
struct Unanswered {
    call: u64,
    sent: Instant,
    cost: Cost,
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
            next_probe: None,
            sent_before_refusal: 0,
            refusals: 0,
            most_unanswered: None,
            typical_output: FIRST_OUTPUT,
            uncached: 1.0,
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
        while self.unanswered.front().is_some_and(|call| now.saturating_duration_since(call.sent) > MINUTE) {
            self.unanswered.pop_front();
        }
        if let Some(until) = self.paused_until.filter(|until| *until > now) {
            return self.check_pause(until, now);
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

    /// Decides about a call during a pause. If the pause is too long, one call is sent from time to
    /// time, which ends the pause if it succeeds.
    fn check_pause(&mut self, until: Instant, now: Instant) -> Verdict {
        let (wait, max_wait) = (until - now, self.policy.max_wait);
        if wait <= max_wait {
            return Verdict::Wait(RateLimit::Refusal, Some(until));
        }
        if self.next_probe.is_some_and(|probe| now < probe) {
            return Verdict::Fail(wait);
        }
        self.next_probe = now.checked_add(max_wait);
        Verdict::Go
    }

    /// Returns when the reported limits have room for a call besides the unanswered ones that the
    /// reports do not contain. A wait that is too long for the call alone is left to the service.
    fn reported_at(&self, cost: Cost, now: Instant) -> Vec<(RateLimit, Instant)> {
        let too_late = now.checked_add(self.policy.max_wait);
        let at = |(limit, reported): (&RateLimit, &Reported)| {
            let later = self.unanswered.iter().filter(|one| one.call > reported.by);
            let others = later.map(|one| self.need(one.cost, *limit)).fold(0, u64::saturating_add);
            let need = self.need(cost, *limit);
            let is_too_late = too_late.is_some_and(|late| reported.available_at(need, 0) > late);
            (!is_too_late).then(|| (*limit, reported.available_at(need, others)))
        };
        self.reported.iter().filter_map(at).collect()
    }

    /// Returns what a call needs of a reported limit.
    fn need(&self, cost: Cost, limit: RateLimit) -> u64 {
        match limit {
            RateLimit::InputTokens => (cost.input as f64 * self.uncached) as u64,
            _ => cost.of(limit),
        }
    }

    fn quotas_at(&self, cost: Cost, now: Instant) -> Vec<(RateLimit, Instant)> {
        let at = |(limit, per_minute)| {
            (limit, self.quota(limit, per_minute, now).available_at(cost.of(limit), now))
        };
        self.policy.per_minute().map(at).collect()
    }

    fn quota(&self, limit: RateLimit, per_minute: u64, now: Instant) -> Quota {
        self.quotas
            .get(&limit)
            .map_or_else(|| Quota::full(per_minute, now), |quota| quota.with_rate(per_minute))
    }

    /// Takes one cost from the quotas, and gives another back.
    fn take(
        &mut self,
        now: Instant,
        taken: impl Fn(RateLimit) -> u64,
        given_back: impl Fn(RateLimit) -> u64,
    ) {
        for (limit, per_minute) in self.policy.per_minute() {
            let mut quota = self.quota(limit, per_minute, now);
            quota.take(taken(limit) as f64, given_back(limit) as f64, now);
            self.quotas.insert(limit, quota);
        }
    }

    /// Counts a call that is sent; returns its number.
    pub(super) fn send(&mut self, cost: Cost, now: Instant) -> u64 {
        self.take(now, |limit| cost.of(limit), |_| 0);
        (self.sent, self.calls) = (self.sent + 1, self.calls + 1);
        self.unanswered.push_back(Unanswered { call: self.sent, sent: now, cost });
        self.sent
    }

    /// Notes that the response to a call has begun, with what it reports.
    pub(super) fn answered(&mut self, call: u64, limits: &RateLimits, now: Instant) {
        self.forget(call);
        let increased = self.most_unanswered.map(|most| most + 1.0 / most);
        self.most_unanswered = increased.filter(|most| *most < MANY);
        if call > self.sent_before_refusal {
            (self.paused_until, self.next_probe, self.refusals) = (None, None, 0);
        }
        let reported = |(limit, allowance)| (limit, Reported { allowance, at: now, by: call });
        self.reported.extend(limits.iter().map(reported));
    }

    /// Notes that the service refused a call for its rate.
    pub(super) fn refused(&mut self, call: u64, cost: Cost, wait: Option<Duration>, now: Instant) {
        let most = self.most_unanswered.unwrap_or(self.unanswered.len() as f64);
        // The refusals of calls that were sent together count as one.
        if call > self.sent_before_refusal || self.most_unanswered.is_none() {
            self.most_unanswered = Some((most / 2.0).max(1.0));
            (self.sent_before_refusal, self.refusals) = (self.sent, self.refusals.saturating_add(1));
        }
        self.forget(call);
        self.take(now, |_| 0, |limit| cost.of(limit));
        let least = PAUSE.saturating_mul(1 << self.refusals.clamp(1, 7) >> 1).min(MINUTE);
        let pause = wait.unwrap_or_default().max(least).min(LONGEST_RESET);
        self.paused_until = self.paused_until.max(Some(now + pause));
        self.next_probe = now.checked_add(self.policy.max_wait);
    }

    /// Notes that the service answered a call with an error: it used no tokens.
    pub(super) fn failed(&mut self, call: u64, cost: Cost, now: Instant) {
        self.end(call, cost, None, now);
        self.take(now, |limit| Cost::default().of(limit), |limit| cost.of(limit));
    }

    /// Notes that a call has ended, and what it used. If that is unknown, the estimate stays.
    pub(super) fn end(&mut self, call: u64, cost: Cost, usage: Option<Usage>, now: Instant) {
        self.forget(call);
        self.calls = self.calls.saturating_sub(1);
        let Some(usage) = usage.filter(|usage| usage.total_tokens() > 0) else { return };
        let output = usage.output_tokens.min(LARGEST_OUTPUT);
        self.typical_output = (self.typical_output * 7 + output) / 8;
        if usage.input_tokens > 0 {
            let cached = usage.cache_read_tokens.min(usage.input_tokens) as f64;
            self.uncached = (self.uncached * 7.0 + 1.0 - cached / usage.input_tokens as f64) / 8.0;
        }
        let used = Cost { input: usage.input_tokens, output: usage.output_tokens };
        self.take(now, |limit| used.of(limit), |limit| cost.of(limit));
    }

    fn forget(&mut self, call: u64) {
        self.unanswered.retain(|one| one.call != call);
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
