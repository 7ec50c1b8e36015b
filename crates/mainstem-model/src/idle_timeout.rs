//! A timeout for models that stop sending.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream;
use tokio::time::{Instant, Sleep, sleep};

use crate::{ErrorKind, Model, ModelDelta, ModelError, ModelRequest, ModelStream};

/// A model whose call fails with [`ErrorKind::Timeout`] when no data comes for a while, also while
/// it connects.
///
/// Time counts only while the stream is polled and pending: a caller that pauses does not cause a
/// timeout. (If the timer is seen long after it fired, the stream was not polled in between, and
/// the timer is reset.)
///
/// ```
/// use std::time::Duration;
///
/// use mainstem_model::{IdleTimeout, Model, ScriptedModel};
///
/// let model = IdleTimeout::new(ScriptedModel::new(), Duration::from_secs(60));
/// assert_eq!(model.name(), "scripted");
/// ```
#[derive(Clone, Debug)]
pub struct IdleTimeout<M> {
    inner: M,
    limit: Duration,
}

impl<M: Model> IdleTimeout<M> {
    /// Creates a model with a limit for its silence.
    pub fn new(inner: M, limit: Duration) -> Self {
        Self { inner, limit }
    }
}

#[deny(clippy::missing_trait_methods, reason = "a default would hide the model's own")]
impl<M: Model> Model for IdleTimeout<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn provider(&self) -> Option<&str> {
        self.inner.provider()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        Box::pin(Watched {
            name: self.inner.name().to_owned(),
            stream: Some(self.inner.stream(request)),
            limit: self.limit,
            silent_since: None,
            alarm: None,
        })
    }

    fn can_enforce_schema(&self, request: &ModelRequest) -> bool {
        self.inner.can_enforce_schema(request)
    }
}

/// A timer that is seen later than this after it fired was not polled meanwhile.
const LATE: Duration = Duration::from_millis(100);

struct Watched {
    name: String,
    stream: Option<ModelStream>,
    limit: Duration,
    /// Since when the stream has been pending; the timer is set once and moved only when it fires,
    /// because moving it with each delta costs more than the delta.
    silent_since: Option<Instant>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Watched {
    /// Ready when the silence has lasted for the limit.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut since = *self.silent_since.get_or_insert_with(Instant::now);
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(self.limit)));
        while alarm.as_mut().poll(cx).is_ready() {
            if alarm.deadline().elapsed() > LATE {
                since = Instant::now();
                self.silent_since = Some(since);
            }
            if since.elapsed() >= self.limit {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(since + self.limit);
        }
        Poll::Pending
    }
}

impl Stream for Watched {
    type Item = Result<ModelDelta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        match stream.as_mut().poll_next(cx) {
            Poll::Ready(item) => {
                self.silent_since = None;
                if !matches!(item, Some(Ok(_))) {
                    self.stream = None;
                }
                Poll::Ready(item)
            }
            Poll::Pending => self.poll_silence(cx).map(|()| {
                self.stream = None;
                let message = format!("{} sent nothing for {:?}", self.name, self.limit);
                Some(Err(ModelError::new(ErrorKind::Timeout, message)))
            }),
        }
    }
}

#[cfg(test)]
mod tests;
