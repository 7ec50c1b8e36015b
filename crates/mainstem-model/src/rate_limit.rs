//! Calls that wait for the rate limits of their service.

mod bucket;
mod limiter;
mod pace;
mod policy;
mod queue;
mod registry;

use std::{
    ops::ControlFlow,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream;
use mainstem_message::{Failure, Usage};
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
/// demands, and fewer are sent at the same time.
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
            refusals: 0,
        })
    }

    fn can_enforce_schema(&self, request: &ModelRequest) -> bool {
        self.inner.can_enforce_schema(request)
    }
}

/// How often a call waits again after a refusal, before the refusal is its failure: with a service
/// that asks for no longer waits, for about a minute and a half.
const REFUSALS: u32 = 10;

/// How often it does so at its former place in the queue. After that it goes to the end: a call
/// that is never accepted must not hold back others.
const REFUSALS_AT_PLACE: u32 = 2;

/// What a model's stream yields; `None` at its end.
type Item = Option<Result<ModelDelta, ModelError>>;

struct Call<M> {
    model: Arc<M>,
    limiter: RateLimiter,
    state: State,
    /// How often the service has refused it.
    refusals: u32,
}

enum State {
    New(ModelRequest),
    Waiting { request: ModelRequest, waiting: Waiting, since: Instant },
    Sent(Sent),
    Over,
}

struct Sent {
    stream: ModelStream,
    permit: Permit,
    usage: Option<Usage>,
    /// For a further attempt; `None` once the answer has begun.
    request: Option<ModelRequest>,
}

impl<M: Model> Call<M> {
    fn send(&mut self, request: ModelRequest, permit: Permit) {
        let stream = self.model.stream(request.clone());
        self.state = State::Sent(Sent { stream, permit, usage: None, request: Some(request) });
    }

    /// Sends the call and goes on, or breaks with the report that it waits.
    fn begin(
        &mut self,
        request: ModelRequest,
        mut waiting: Waiting,
        refusal: Option<&ModelError>,
        cx: &mut Context<'_>,
    ) -> ControlFlow<Item> {
        match waiting.poll_permit(cx) {
            Poll::Ready(Ok(permit)) => {
                self.send(request, permit);
                ControlFlow::Continue(())
            }
            Poll::Ready(Err(wait)) => {
                let error = refusal.cloned().unwrap_or_else(|| self.not_called(wait));
                ControlFlow::Break(Some(Err(error)))
            }
            Poll::Pending => {
                let report = waiting.report(refusal.map(Failure::from));
                self.state = State::Waiting { request, waiting, since: Instant::now() };
                ControlFlow::Break(Some(Ok(report)))
            }
        }
    }

    /// Breaks with an item of the model; a call that is refused for its rate waits again.
    fn receive(&mut self, item: Item, mut sent: Sent, cx: &mut Context<'_>) -> ControlFlow<Item> {
        sent.learn(item.as_ref());
        match (item, sent.request.take()) {
            (Some(Ok(delta)), request) => {
                sent.request = request.filter(|_| !delta.is_content());
                self.state = State::Sent(sent);
                ControlFlow::Break(Some(Ok(delta)))
            }
            // `Retry` repeats a call that has used tokens, so that they count.
            (Some(Err(error)), Some(request))
                if is_refusal(&error) && self.refusals < REFUSALS && sent.usage.is_none() =>
            {
                self.refusals += 1;
                let waiting = sent.permit.wait_again(&request.session, self.refusals <= REFUSALS_AT_PLACE);
                self.begin(request, waiting, Some(&error), cx)
            }
            (end, request) => {
                match &end {
                    // `learn` has returned the estimate of a refusal for the rate. A prompt whose
                    // connection was cut may have been read.
                    Some(Err(error)) if !is_refusal(error) && error.status().is_some() => {
                        sent.permit.fail(sent.usage);
                    }
                    _ => sent.permit.end(sent.usage),
                }
                let is_last = request.is_some() && self.refusals >= REFUSALS;
                let is_in_vain = |error: &ModelError| is_last && is_refusal(error);
                ControlFlow::Break(match end {
                    Some(Err(error)) if is_in_vain(&error) => Some(Err(error.with_repeats(REFUSALS + 1))),
                    end => end,
                })
            }
        }
    }

    /// Creates the failure of a call that is not sent, because its service demanded a long wait.
    fn not_called(&self, wait: Duration) -> ModelError {
        let message = format!(
            "{} was not called: its service limits the rate of calls and accepts none for {:.0} s",
            self.model.name(),
            wait.as_secs_f64().ceil()
        );
        ModelError::new(ErrorKind::RateLimited, message).with_retry_after(wait)
    }
}

impl Sent {
    /// Tells the limiter what an item shows of the service.
    fn learn(&mut self, item: Option<&Result<ModelDelta, ModelError>>) {
        match item {
            Some(Err(error)) if is_refusal(error) => self.permit.refused(error.retry_after()),
            Some(Ok(ModelDelta::RateLimits(limits))) => self.permit.answered(Some(limits)),
            Some(Ok(delta)) => {
                self.permit.answered(None);
                if let ModelDelta::Usage(usage) = delta {
                    self.usage = Some(*usage);
                }
            }
            Some(Err(_)) | None => {}
        }
    }
}

fn is_refusal(error: &ModelError) -> bool {
    error.kind() == ErrorKind::RateLimited
}

impl<M: Model> Stream for Call<M> {
    type Item = Result<ModelDelta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let me = &mut *self;
        loop {
            match std::mem::replace(&mut me.state, State::Over) {
                State::New(request) => {
                    let waiting = me.limiter.join(&request);
                    if let ControlFlow::Break(item) = me.begin(request, waiting, None, cx) {
                        return Poll::Ready(item);
                    }
                }
                State::Waiting { request, mut waiting, since } => match waiting.poll_permit(cx) {
                    Poll::Pending => {
                        me.state = State::Waiting { request, waiting, since };
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(wait)) => return Poll::Ready(Some(Err(me.not_called(wait)))),
                    Poll::Ready(Ok(permit)) => {
                        me.send(request, permit);
                        let waited = since.elapsed();
                        return Poll::Ready(Some(Ok(ModelDelta::RateLimitPassed { waited })));
                    }
                },
                State::Sent(mut sent) => {
                    let Poll::Ready(item) = sent.stream.as_mut().poll_next(cx) else {
                        me.state = State::Sent(sent);
                        return Poll::Pending;
                    };
                    if let ControlFlow::Break(item) = me.receive(item, sent, cx) {
                        return Poll::Ready(item);
                    }
                }
                State::Over => return Poll::Ready(None),
            }
        }
    }
}

#[cfg(test)]
mod tests;
