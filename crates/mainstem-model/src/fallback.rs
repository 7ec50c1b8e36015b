//! Calling another model when the first one fails.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use mainstem_message::Failure;

use crate::{Model, ModelDelta, ModelError, ModelRequest, ModelStream};

/// A model that calls another one if the first fails, also in the middle of an answer: then the
/// [`ModelDelta::Fallback`] takes back what the first has said, unless the request's
/// [`OnCut`](crate::OnCut) forbids it.
///
/// This follows any error, because a wrong key or an exhausted quota of one vendor does not concern
/// the other. The stream reports it as [`ModelDelta::Fallback`].
///
/// ```
/// use futures_util::StreamExt;
/// use mainstem_model::{Fallback, Model, ModelDelta, ModelRequest, ScriptedModel, scripted::Turn};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let first = ScriptedModel::named("first"); // has no script, so its calls fail
/// let second = ScriptedModel::named("second").agent("main", [Turn::new().text("Hello.")]);
/// let model = Fallback::new(first, second);
///
/// let request = ModelRequest { agent: "main".into(), ..ModelRequest::default() };
/// let deltas: Vec<_> = model.stream(request).collect().await;
/// assert!(matches!(&deltas[0], Ok(ModelDelta::Fallback { to, .. }) if &**to == "second"));
/// assert!(matches!(&deltas[1], Ok(ModelDelta::Text(text)) if text == "Hello."));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fallback<M, N> {
    first: M,
    second: Arc<N>,
}

impl<M: Model, N: Model> Fallback<M, N> {
    /// Creates a model that calls `first`, and `second` if that fails. Nest it for more than two.
    pub fn new(first: M, second: N) -> Self {
        Self { first, second: Arc::new(second) }
    }
}

#[deny(clippy::missing_trait_methods, reason = "a default would hide the model's own")]
impl<M: Model, N: Model> Model for Fallback<M, N> {
    fn name(&self) -> &str {
        self.first.name()
    }

    fn provider(&self) -> Option<&str> {
        self.first.provider()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        Box::pin(Either {
            stream: Some(self.first.stream(request.clone())),
            spare: Some((self.second.clone(), request)),
            from: self.first.name().into(),
        })
    }

    fn can_enforce_schema(&self, request: &ModelRequest) -> bool {
        self.first.can_enforce_schema(request) && self.second.can_enforce_schema(request)
    }
}

struct Either<N> {
    stream: Option<ModelStream>,
    /// Taken when the second model is called, or when the answer has begun and may not be repeated.
    spare: Option<(Arc<N>, ModelRequest)>,
    from: Arc<str>,
}

impl<N: Model> Either<N> {
    fn on_error(&mut self, error: ModelError) -> Result<ModelDelta, ModelError> {
        let Some((model, request)) = self.spare.take() else {
            self.stream = None;
            // The caller would take it for the window of the first model, whose name it knows.
            return Err(error.without_context_window());
        };
        self.stream = Some(model.stream(request));
        let (from, to) = (self.from.clone(), model.name().into());
        Ok(ModelDelta::Fallback { from, to, reason: Failure::from(&error) })
    }
}

impl<N: Model> Stream for Either<N> {
    type Item = Result<ModelDelta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        Poll::Ready(match ready!(stream.as_mut().poll_next(cx)) {
            Some(Ok(delta)) => {
                if delta.is_content() {
                    self.spare.take_if(|(_, request)| !request.can_repeat_cut());
                }
                Some(Ok(delta))
            }
            Some(Err(error)) => Some(self.on_error(error)),
            None => {
                self.stream = None;
                None
            }
        })
    }
}

#[cfg(test)]
mod tests;
