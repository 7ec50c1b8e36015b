//! The limiter that calls share: the driver of the pace and the queue.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use mainstem_message::{Failure, RateLimit, RateLimits, Usage};
use tokio::time::{Instant, Sleep, sleep_until};

use super::{
    RatePolicy,
    pace::{Cost, Pace, Verdict},
    queue::{PATIENCE, Queue, Ticket},
};
use crate::{ModelDelta, ModelRequest};

/// The longest time after which a waiting call checks the calls before it.
const LONGEST_CHECK: Duration = Duration::from_secs(30);

/// The approximate number of bytes in a token.
const BYTES_PER_TOKEN: usize = 4;

/// What a service allows the calls of one model with one key, and the calls that wait for it.
/// Clones share it.
///
/// ```
/// use mainstem_model::{RateLimited, RateLimiter, RatePolicy, ScriptedModel};
///
/// let mut policy = RatePolicy::default();
/// policy.requests_per_minute = Some(10);
/// let model = RateLimited::new(ScriptedModel::new(), RateLimiter::new(policy));
/// # let _ = model;
/// ```
#[derive(Clone)]
pub struct RateLimiter(Arc<Mutex<State>>);

struct State {
    pace: Pace,
    queue: Queue,
    /// What the first call in the queue waits for.
    waits_for: (RateLimit, Option<Instant>),
}

impl Default for RateLimiter {
    /// Creates a limiter that knows the limits that the service reports.
    fn default() -> Self {
        Self::new(RatePolicy::default())
    }
}

impl RateLimiter {
    /// Creates a limiter with further limits.
    pub fn new(policy: RatePolicy) -> Self {
        let waits_for = (RateLimit::Refusal, None);
        Self(Arc::new(Mutex::new(State { pace: Pace::new(policy), queue: Queue::default(), waits_for })))
    }

    /// Replaces the further limits; calls in progress count.
    pub(super) fn set_policy(&self, policy: RatePolicy) {
        let mut state = self.lock();
        state.pace.set_policy(policy);
        state.queue.wake_first(Instant::now());
    }

    /// Returns `true` if there are other clones of it.
    pub(super) fn is_used(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    #[cfg(test)]
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Adds a call to the queue.
    pub(super) fn join(&self, request: &ModelRequest) -> Waiting {
        let input = (request.size() / BYTES_PER_TOKEN) as u64;
        let most = request.options.max_output_tokens.map(u64::from);
        let mut state = self.lock();
        let output = most.unwrap_or_else(|| state.pace.typical_output());
        let ticket = state.queue.join(&request.session);
        Waiting { limiter: self.clone(), ticket, cost: Cost { input, output }, timer: None }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("RateLimiter").field("pace", &state.pace).field("queue", &state.queue).finish()
    }
}

/// A call in the queue. Dropping it gives up the place.
pub(super) struct Waiting {
    limiter: RateLimiter,
    ticket: Ticket,
    cost: Cost,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Waiting {
    /// Ready when the call may be sent, or fails with the wait that the service demands.
    pub(super) fn poll_permit(&mut self, cx: &mut Context<'_>) -> Poll<Result<Permit, Duration>> {
        let mut is_due = false;
        loop {
            let until = match self.step(cx, Instant::now(), is_due) {
                Ok(outcome) => return Poll::Ready(outcome),
                Err(until) => until,
            };
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
            if timer.deadline() != until {
                timer.as_mut().reset(until);
            }
            is_due = timer.as_mut().poll(cx).is_ready();
            if !is_due {
                return Poll::Pending;
            }
        }
    }

    /// Returns the outcome, or when to check again; `is_due` if that is now.
    fn step(
        &self,
        cx: &Context<'_>,
        now: Instant,
        is_due: bool,
    ) -> Result<Result<Permit, Duration>, Instant> {
        let mut state = self.limiter.lock();
        let State { pace, queue, waits_for } = &mut *state;
        if !queue.is_turn(self.ticket, cx.waker(), now) {
            return Err(match &self.timer {
                Some(timer) if !is_due => timer.deadline(),
                _ => {
                    // The call whose turn it is may have stopped polling.
                    queue.wake_first(now);
                    now + check_interval(queue.ahead(self.ticket))
                }
            });
        }
        let outcome = match pace.check(self.cost, now) {
            Verdict::Go => {
                let call = pace.send(self.cost, now);
                Ok(Permit {
                    limiter: self.limiter.clone(),
                    ticket: self.ticket,
                    call,
                    cost: self.cost,
                    is_answered: false,
                    is_over: false,
                })
            }
            Verdict::Fail(wait) => Err(wait),
            Verdict::Wait(limit, until) => {
                *waits_for = (limit, until);
                return Err(until.unwrap_or(now + Duration::from_secs(1)));
            }
        };
        queue.served(self.ticket);
        queue.wake_first(now);
        Ok(outcome)
    }

    /// Returns the report that the call waits, with the refusal if it was refused.
    pub(super) fn report(&self, refusal: Option<Failure>) -> ModelDelta {
        let state = self.limiter.lock();
        let (limit, until) = state.waits_for;
        let wait = until.map(|until| until.saturating_duration_since(Instant::now()));
        ModelDelta::RateLimitWait { limit, wait, ahead: state.queue.ahead(self.ticket), refusal }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.limiter.lock();
        state.queue.leave(self.ticket);
        state.queue.wake_first(Instant::now());
    }
}

/// Returns how long a call behind these many others waits until it checks whether they still poll:
/// the longer the further back it is, so that all checks together are few.
fn check_interval(ahead: usize) -> Duration {
    let places = u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(1);
    PATIENCE.saturating_mul(places).min(LONGEST_CHECK)
}

/// The right to one call. It ends when it is dropped.
pub(super) struct Permit {
    limiter: RateLimiter,
    ticket: Ticket,
    call: u64,
    cost: Cost,
    is_answered: bool,
    is_over: bool,
}

impl Permit {
    /// Notes that the response has begun; further calls only add what it reports.
    pub(super) fn answered(&mut self, limits: Option<&RateLimits>) {
        if !self.is_answered || limits.is_some() {
            self.is_answered = true;
            let limits = limits.copied().unwrap_or_default();
            self.update(|pace, now| pace.answered(self.call, &limits, now));
        }
    }

    /// Notes that the service refused the call for its rate.
    pub(super) fn refused(&self, wait: Option<Duration>) {
        self.update(|pace, now| pace.refused(self.call, self.cost, wait, now));
    }

    /// Ends the call, which waits again: at its former place, or at the end of the queue.
    pub(super) fn wait_again(self, session: &Arc<str>, is_at_former_place: bool) -> Waiting {
        let (limiter, cost) = (self.limiter.clone(), self.cost);
        let mut state = limiter.lock();
        let ticket = match is_at_former_place {
            true => state.queue.join_again(session, self.ticket),
            false => state.queue.join(session),
        };
        drop(state);
        Waiting { limiter, ticket, cost, timer: None }
    }

    /// Ends the call, with what it used.
    pub(super) fn end(mut self, usage: Option<Usage>) {
        self.is_over = true;
        self.update(|pace, now| pace.end(self.call, self.cost, usage, now));
    }

    /// Ends a call that the service has refused, or has failed to answer.
    pub(super) fn fail(mut self, usage: Option<Usage>) {
        if self.is_answered || usage.is_some() {
            return self.end(usage);
        }
        self.is_over = true;
        self.update(|pace, now| pace.failed(self.call, self.cost, now));
    }

    fn update(&self, change: impl FnOnce(&mut Pace, Instant)) {
        let (mut state, now) = (self.limiter.lock(), Instant::now());
        change(&mut state.pace, now);
        state.queue.wake_first(now);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.is_over {
            self.update(|pace, now| pace.end(self.call, self.cost, None, now));
        }
    }
}
