//! A circuit breaker around a model.

mod circuit;

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use tokio::time::Instant;

use self::circuit::{Circuit, Pass};
use crate::{ErrorKind, Model, ModelDelta, ModelError, ModelRequest, ModelStream};

/// A circuit breaker: after several transient failures in a row, calls fail at once for a while;
/// then one call is made, and the others follow if it succeeds.
///
/// All clones share their state, and so do the children of a session with the same model: twenty
/// children of a service that is down call it a few times, not eighty. A call that is not made
/// fails at once with [`ErrorKind::Overloaded`] and the time to wait, so that a
/// [`Retry`](crate::Retry) around this waits just so long, and a [`Fallback`](crate::Fallback)
/// calls its other model without waiting.
///
/// Only transient failures before the first part of an answer count. A permanent refusal, such as
/// of a wrong key, shows that the service is up; a refusal for the rate of calls
/// ([`ErrorKind::RateLimited`]) does not count.
///
/// ```
/// use mainstem_model::{Breaker, Fallback, Retry, ScriptedModel};
///
/// let first = Retry::new(Breaker::new(ScriptedModel::named("first")));
/// let model = Fallback::new(first, ScriptedModel::named("second"));
/// # let _ = model;
/// ```
#[derive(Debug)]
pub struct Breaker<M> {
    inner: Arc<M>,
    policy: BreakerPolicy,
    circuit: Arc<Mutex<Circuit>>,
}

/// When to stop calling, and for how long.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BreakerPolicy {
    /// The number of failures in a row; at least 1.
    pub failures: u32,
    /// The pause without calls; the time that the service itself requests (`Retry-After`) counts if
    /// it is longer.
    pub pause: Duration,
}

/// The longest pause that a service can demand.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// While one call probes the service, the others check again after this part of the pause.
const SOON: u32 = 5;

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self { failures: 5, pause: Duration::from_secs(10) }
    }
}

impl<M: Model> Breaker<M> {
    /// Creates a breaker with a pause of ten seconds after five failures in a row.
    pub fn new(inner: M) -> Self {
        Self::with_policy(inner, BreakerPolicy::default())
    }

    /// Creates a breaker with a policy.
    pub fn with_policy(inner: M, policy: BreakerPolicy) -> Self {
        Self { inner: Arc::new(inner), policy, circuit: Arc::default() }
    }
}

impl<M> Clone for Breaker<M> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), policy: self.policy, circuit: self.circuit.clone() }
    }
}

#[deny(clippy::missing_trait_methods, reason = "a default would hide the model's own")]
impl<M: Model> Model for Breaker<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn provider(&self) -> Option<&str> {
        self.inner.provider()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        Box::pin(Guarded { breaker: self.clone(), state: State::New(request) })
    }

    fn can_enforce_schema(&self, request: &ModelRequest) -> bool {
        self.inner.can_enforce_schema(request)
    }
}

struct Guarded<M> {
    breaker: Breaker<M>,
    state: State,
}

enum State {
    New(ModelRequest),
    /// The outcome of the call is open.
    Asked(ModelStream, Call),
    /// The outcome is known.
    Answered(ModelStream),
    Over,
}

/// A call that was admitted; if it is dropped before its outcome is known, another may take its
/// place.
struct Call {
    circuit: Arc<Mutex<Circuit>>,
    pass: Option<Pass>,
}

impl Call {
    fn succeeded(mut self) {
        if let Some(pass) = self.pass.take() {
            lock(&self.circuit).succeeded(pass);
        }
    }

    fn failed(mut self, policy: &BreakerPolicy, error: &ModelError) {
        let pause = policy.pause.max(error.retry_after().unwrap_or_default());
        if let Some(pass) = self.pass.take() {
            let until = Instant::now() + pause.min(LONGEST_PAUSE);
            lock(&self.circuit).failed(pass, policy.failures, until);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(pass) = self.pass.take() {
            lock(&self.circuit).gave_up(pass, Instant::now());
        }
    }
}

impl<M: Model> Guarded<M> {
    /// Admits the call, or fails with the time to wait.
    fn begin(&mut self, request: ModelRequest) -> Result<(), ModelError> {
        let (model, now) = (&self.breaker.inner, Instant::now());
        match lock(&self.breaker.circuit).admit(now, self.breaker.policy.pause / SOON) {
            Ok(pass) => {
                let call = Call { circuit: self.breaker.circuit.clone(), pass: Some(pass) };
                self.state = State::Asked(model.stream(request), call);
                Ok(())
            }
            Err(until) => {
                let wait = until.saturating_duration_since(now);
                let message = format!(
                    "{} was not asked: it failed several times in a row and is left alone for {:.1} s more",
                    model.name(),
                    wait.as_secs_f64()
                );
                Err(ModelError::new(ErrorKind::Overloaded, message).with_retry_after(wait))
            }
        }
    }

    /// Records what an item tells about the service.
    fn learn(&mut self, stream: ModelStream, call: Call, item: &Result<ModelDelta, ModelError>) {
        self.state = match item {
            Ok(delta) if !delta.is_content() => State::Asked(stream, call),
            Ok(_) => {
                call.succeeded();
                State::Answered(stream)
            }
            // A service that limits the rate of calls does not fail.
            Err(error) if error.kind() == ErrorKind::RateLimited => State::Over,
            Err(error) if error.is_retryable() => {
                call.failed(&self.breaker.policy, error);
                State::Over
            }
            Err(_) => {
                call.succeeded();
                State::Over
            }
        };
    }
}

impl<M: Model> Stream for Guarded<M> {
    type Item = Result<ModelDelta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let me = &mut *self;
        loop {
            match std::mem::replace(&mut me.state, State::Over) {
                State::New(request) => {
                    if let Err(error) = me.begin(request) {
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                State::Asked(mut stream, call) => {
                    let Poll::Ready(item) = stream.as_mut().poll_next(cx) else {
                        me.state = State::Asked(stream, call);
                        return Poll::Pending;
                    };
                    match &item {
                        Some(item) => me.learn(stream, call, item),
                        None => call.succeeded(),
                    }
                    return Poll::Ready(item);
                }
                State::Answered(mut stream) => {
                    let item = stream.as_mut().poll_next(cx);
                    if !matches!(item, Poll::Ready(None)) {
                        me.state = State::Answered(stream);
                    }
                    return Poll::Ready(ready!(item));
                }
                State::Over => return Poll::Ready(None),
            }
        }
    }
}

fn lock(circuit: &Mutex<Circuit>) -> MutexGuard<'_, Circuit> {
    circuit.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
