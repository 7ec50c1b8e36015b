//! Asking again after a passing failure.

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

/// A model that is asked again after a passing failure, never once part of the answer was
/// delivered.
///
/// It waits as long as the service asks (`Retry-After`), else exponentially longer with jitter, and
/// says each attempt as [`ModelDelta::Retry`]. A service that asks for more than
/// [`RetryPolicy::max_wait`] is not waited for: its error is the call's.
#[derive(Clone, Debug)]
pub struct Retry<M> {
    inner: Arc<M>,
    policy: RetryPolicy,
}

/// How often and how long.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Most attempts, the first included.
    pub attempts: u32,
    /// The first wait; each next one is twice as long.
    pub min_wait: Duration,
    /// The longest wait.
    pub max_wait: Duration,
    /// Whether waits are spread, so that a fleet does not come back in step.
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
    /// Up to four attempts, from half a second to thirty seconds apart.
    pub fn new(inner: M) -> Self {
        Self::with_policy(inner, RetryPolicy::default())
    }

    /// With a policy of one's own.
    pub fn with_policy(inner: M, policy: RetryPolicy) -> Self {
        Self { inner: Arc::new(inner), policy }
    }
}

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
            waits: self.policy.waits(),
            max_wait: self.policy.max_wait,
            attempt: 1,
            sleep: None,
        })
    }

    fn holds_schema(&self, request: &ModelRequest) -> bool {
        self.inner.holds_schema(request)
    }
}

struct Attempts<M> {
    model: Arc<M>,
    /// Given back as soon as nothing can be repeated any more.
    request: Option<ModelRequest>,
    stream: Option<ModelStream>,
    sleep: Option<Pin<Box<Sleep>>>,
    waits: ExponentialBackoff,
    max_wait: Duration,
    attempt: u32,
}

impl<M: Model> Attempts<M> {
    /// How long to wait before the next attempt, or `None` if the error is final.
    fn next_wait(&mut self, error: &ModelError) -> Option<Duration> {
        if self.request.is_none() || !error.is_retryable() {
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
        self.attempt += 1;
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
                if delta.is_content() {
                    me.request = None;
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
