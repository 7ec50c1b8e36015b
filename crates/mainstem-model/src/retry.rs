//! Retrying after transient failures.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures_core::Stream;
use mainstem_message::Failure;
use tokio::time::{Sleep, sleep};

use crate::{Model, ModelDelta, ModelError, ModelRequest, ModelStream};

/// A model whose call is repeated after a transient failure, also in the middle of an answer: then
/// the [`ModelDelta::Retry`] takes back what the failed attempt has said, unless the request's
/// [`OnCut`](crate::OnCut) forbids it.
///
/// It waits as long as the service asks (`Retry-After`), or else exponentially longer with jitter,
/// and reports each attempt as [`ModelDelta::Retry`]. If a service asks for more than
/// [`RetryPolicy::max_wait`], its error ends the call.
///
/// ```
/// use std::time::Duration;
///
/// use mainstem_model::{IdleTimeout, Retry, RetryPolicy, ScriptedModel};
///
/// let model = IdleTimeout::new(ScriptedModel::new(), Duration::from_secs(60));
/// let mut policy = RetryPolicy::default();
/// policy.max_wait = Duration::from_secs(30);
/// let model = Retry::with_policy(model, policy);
/// # let _ = model;
/// ```
#[derive(Clone, Debug)]
pub struct Retry<M> {
    inner: Arc<M>,
    policy: RetryPolicy,
}

/// The number of attempts, and the waits between them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The maximum number of attempts, the first included.
    pub attempts: u32,
    /// The first wait; each next one is twice as long.
    pub min_wait: Duration,
    /// The longest wait.
    pub max_wait: Duration,
    /// Whether waits are randomized, so that the calls of a fleet are spread.
    pub jitter: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 4,
            min_wait: Duration::from_millis(500),
            max_wait: Duration::from_secs(30),
            jitter: true,
        }
    }
}

impl RetryPolicy {
    fn waits(&self) -> ExponentialBackoff {
        let builder = ExponentialBuilder::default()
            .with_min_delay(self.min_wait)
            .with_max_delay(self.max_wait)
            .with_max_times(self.attempts.saturating_sub(1) as usize);
        if self.jitter { builder.with_jitter().build() } else { builder.build() }
    }
}

impl<M: Model> Retry<M> {
    /// Creates a model with up to four attempts, from half a second to thirty seconds apart.
    pub fn new(inner: M) -> Self {
        Self::with_policy(inner, RetryPolicy::default())
    }

    /// Creates a model with a policy.
    pub fn with_policy(inner: M, policy: RetryPolicy) -> Self {
        Self { inner: Arc::new(inner), policy }
    }
}

#[deny(clippy::missing_trait_methods, reason = "a default would hide the model's own")]
impl<M: Model> Model for Retry<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn provider(&self) -> Option<&str> {
        self.inner.provider()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        Box::pin(Attempts {
            stream: Some(self.inner.stream(request.clone())),
            model: self.inner.clone(),
            request: Some(request),
            has_begun: false,
            waits: self.policy.waits(),
            max_wait: self.policy.max_wait,
            attempt: 1,
            sleep: None,
        })
    }

    fn can_enforce_schema(&self, request: &ModelRequest) -> bool {
        self.inner.can_enforce_schema(request)
    }
}

struct Attempts<M> {
    model: Arc<M>,
    /// Dropped as soon as the answer has begun, if it may not be repeated then.
    request: Option<ModelRequest>,
    /// Whether a part of the present attempt was delivered.
    has_begun: bool,
    stream: Option<ModelStream>,
    sleep: Option<Pin<Box<Sleep>>>,
    waits: ExponentialBackoff,
    max_wait: Duration,
    attempt: u32,
}

impl<M: Model> Attempts<M> {
    /// Returns how long to wait before the next attempt, or `None` if the error is final.
    fn next_wait(&mut self, error: &ModelError) -> Option<Duration> {
        let can_succeed = if self.has_begun { error.is_cut() } else { error.is_retryable() };
        if self.request.is_none() || !can_succeed || error.is_repeated() {
            return None;
        }
        let wait = self.waits.next()?;
        Some(error.retry_after().unwrap_or(wait)).filter(|wait| *wait <= self.max_wait)
    }

    fn on_error(&mut self, error: ModelError) -> Result<ModelDelta, ModelError> {
        self.stream = None;
        let Some(wait) = self.next_wait(&error) else { return Err(error) };
        self.sleep = Some(Box::pin(sleep(wait)));
        let attempt = self.attempt;
        (self.attempt, self.has_begun) = (attempt + 1, false);
        Ok(ModelDelta::Retry { attempt, wait, error: Failure::from(&error) })
    }
}

impl<M: Model> Stream for Attempts<M> {
    type Item = Result<ModelDelta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let me = &mut *self;
        if let Some(sleep) = &mut me.sleep {
            ready!(sleep.as_mut().poll(cx));
            me.sleep = None;
            me.stream = me.request.clone().map(|request| me.model.stream(request));
        }
        let Some(stream) = &mut me.stream else { return Poll::Ready(None) };
        Poll::Ready(match ready!(stream.as_mut().poll_next(cx)) {
            Some(Ok(delta)) => {
                if delta.is_content() && !me.has_begun {
                    me.has_begun = true;
                    me.request.take_if(|request| !request.can_repeat_cut());
                }
                Some(Ok(delta))
            }
            Some(Err(error)) => Some(me.on_error(error)),
            None => {
                me.stream = None;
                None
            }
        })
    }
}

#[cfg(test)]
mod tests;
