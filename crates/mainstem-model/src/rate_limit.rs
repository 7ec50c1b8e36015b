//! Calls that wait for the rate limits of their service.

mod limiter;
mod pace;
mod policy;
mod queue;
mod registry;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use mainstem_message::Usage;
use tokio::time::Instant;

use self::limiter::{Permit, Waiting};
pub use self::{
    limiter::RateLimiter,
    policy::RatePolicy,
    registry::{Account, RateLimiters},
};
use crate::{ErrorKind, Model, ModelDelta, ModelError, ModelRequest, ModelStream};

/// A model whose calls wait until its service allows them.
///
/// All models with one [`RateLimiter`] share what the service allows: a call waits, instead of
/// being refused, if the limits that the service reported ([`ModelDelta::RateLimits`]) or the
/// [`RatePolicy`] leave no room for it. After a refusal (429), calls wait as long as the service
/// demands, and then go one by one at first.
///
/// Waiting calls go in turn by session, and by arrival within a session, so that a session with a
/// thousand waiting children delays another session's call by one call. A call that waits reports
/// it as [`ModelDelta::RateLimitWait`]; dropping the stream gives up its place.
///
/// ```
/// use mainstem_model::{RateLimited, RateLimiter, RatePolicy, ScriptedModel};
///
/// let mut policy = RatePolicy::default();
/// policy.tokens_per_minute = Some(30_000);
/// let limiter = RateLimiter::new(policy);
/// let small = RateLimited::new(ScriptedModel::new(), limiter.clone());
/// let large = RateLimited::new(ScriptedModel::new(), limiter);
/// # let _ = (small, large);
/// ```
#[derive(Clone, Debug)]
pub struct RateLimited<M> {
    inner: Arc<M>,
    limiter: RateLimiter,
}

impl<M: Model> RateLimited<M> {
    /// Creates a model whose calls wait for this limiter.
    pub fn new(inner: M, limiter: RateLimiter) -> Self {
        Self { inner: Arc::new(inner), limiter }
    }
}

#[deny(clippy::missing_trait_methods, reason = "a default would hide the model's own")]
impl<M: Model> Model for RateLimited<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn provider(&self) -> Option<&str> {
        self.inner.provider()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        Box::pin(Call {
            model: self.inner.clone(),
            limiter: self.limiter.clone(),
            state: State::New(request),
        })
    }

    fn can_enforce_schema(&self, request: &ModelRequest) -> bool {
        self.inner.can_enforce_schema(request)
    }
}

struct Call<M> {
    model: Arc<M>,
    limiter: RateLimiter,
    state: State,
}

enum State {
    New(ModelRequest),
    Waiting { request: ModelRequest, waiting: Waiting, since: Instant },
    Sent { stream: ModelStream, permit: Permit, usage: Option<Usage> },
    Over,
}

impl<M: Model> Call<M> {
    fn send(&mut self, request: ModelRequest, permit: Permit) {
        let stream = self.model.stream(request);
        self.state = State::Sent { stream, permit, usage: None };
    }

    /// Sends the call, or returns the report that it waits.
    fn begin(
        &mut self,
        request: ModelRequest,
        cx: &mut Context<'_>,
    ) -> Result<Option<ModelDelta>, ModelError> {
        let mut waiting = self.limiter.join(&request);
        match waiting.poll_permit(cx) {
            Poll::Ready(Ok(permit)) => {
                self.send(request, permit);
                Ok(None)
            }
            Poll::Ready(Err(wait)) => Err(self.refusal(wait)),
            Poll::Pending => {
                let report = waiting.report();
                self.state = State::Waiting { request, waiting, since: Instant::now() };
                Ok(Some(report))
            }
        }
    }

    /// Creates the failure of a call that is not sent, because its service demanded a long wait.
    fn refusal(&self, wait: Duration) -> ModelError {
        let message = format!(
            "{} was not called: its service limits the rate of calls and accepts none for {:.0} s",
            self.model.name(),
            wait.as_secs_f64().ceil()
        );
        ModelError::new(ErrorKind::RateLimited, message).with_retry_after(wait)
    }
}

impl<M: Model> Stream for Call<M> {
    type Item = Result<ModelDelta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let me = &mut *self;
        loop {
            match std::mem::replace(&mut me.state, State::Over) {
                State::New(request) => {
                    if let Some(item) = me.begin(request, cx).transpose() {
                        return Poll::Ready(Some(item));
                    }
                }
                State::Waiting { request, mut waiting, since } => match waiting.poll_permit(cx) {
                    Poll::Pending => {
                        me.state = State::Waiting { request, waiting, since };
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(wait)) => return Poll::Ready(Some(Err(me.refusal(wait)))),
                    Poll::Ready(Ok(permit)) => {
                        me.send(request, permit);
                        let waited = since.elapsed();
                        return Poll::Ready(Some(Ok(ModelDelta::RateLimitPassed { waited })));
                    }
                },
                State::Sent { mut stream, mut permit, mut usage } => {
                    let item = stream.as_mut().poll_next(cx);
                    if let Poll::Ready(item) = &item {
                        learn(item.as_ref(), &mut permit, &mut usage);
                    }
                    match &item {
                        Poll::Ready(None | Some(Err(_))) => permit.end(usage),
                        _ => me.state = State::Sent { stream, permit, usage },
                    }
                    return Poll::Ready(ready!(item));
                }
                State::Over => return Poll::Ready(None),
            }
        }
    }
}

/// Tells the limiter what an item shows of the service.
fn learn(item: Option<&Result<ModelDelta, ModelError>>, permit: &mut Permit, usage: &mut Option<Usage>) {
    match item {
        Some(Err(error)) if error.kind() == ErrorKind::RateLimited => permit.refused(error.retry_after()),
        Some(Ok(ModelDelta::RateLimits(limits))) => permit.answered(Some(limits)),
        Some(Ok(ModelDelta::Usage(now))) => {
            permit.answered(None);
            *usage = Some(*now);
        }
        Some(Ok(_)) => permit.answered(None),
        Some(Err(_)) | None => {}
    }
}

#[cfg(test)]
mod tests;
