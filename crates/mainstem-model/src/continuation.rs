//! Answers that go on behind the limit of their length.

use std::{
    collections::VecDeque,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use mainstem_message::{Message, StopReason, Usage};

use crate::{Model, ModelDelta, ModelError, ModelRequest, ModelStream, ToolChoice};

/// A model that is called again with a text which has reached the limit of its length, up to three
/// times; its answer is all the parts.
///
/// It concerns answers whose limit is the service's: those of a request with
/// [`max_output_tokens`](crate::ModelOptions::max_output_tokens), with a schema or with a forced
/// call end at their limit, and so does an answer that calls tools. If the service refuses a later
/// part, as one that is too long for the model, the answer ends with the parts before it. The usage
/// is that of all parts.
///
/// It belongs within [`Retry`](crate::Retry), which repeats all parts after a transient failure,
/// and around [`RateLimited`](crate::RateLimited), for which each part is a call.
///
/// ```
/// use mainstem_model::{Continuation, Retry, ScriptedModel};
///
/// let model = Retry::new(Continuation::new(ScriptedModel::new()).with_most(5));
/// # let _ = model;
/// ```
#[derive(Clone, Debug)]
pub struct Continuation<M> {
    inner: Arc<M>,
    most: u32,
}

/// How often an answer goes on.
const MOST: u32 = 3;

/// What the model is told.
const GO_ON: &str = "<system-reminder>\nYour answer has reached the limit of its length and was cut. Go on exactly \
where it stops: repeat nothing, and say nothing about the cut.\n</system-reminder>";

impl<M: Model> Continuation<M> {
    /// Creates a model whose answers go on up to three times.
    pub fn new(inner: M) -> Self {
        Self { inner: Arc::new(inner), most: MOST }
    }

    /// Sets how often an answer goes on.
    #[must_use]
    pub fn with_most(self, most: u32) -> Self {
        Self { most, ..self }
    }
}

#[deny(clippy::missing_trait_methods, reason = "a default would hide the model's own")]
impl<M: Model> Model for Continuation<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn provider(&self) -> Option<&str> {
        self.inner.provider()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        if !has_service_limit(&request) {
            return self.inner.stream(request);
        }
        Box::pin(Parts {
            stream: Some(self.inner.stream(request.clone())),
            model: self.inner.clone(),
            request: Some(request),
            said: String::new(),
            earlier: Usage::default(),
            usage: Usage::default(),
            end: None,
            out: VecDeque::new(),
            is_cut: false,
            left: self.most,
            is_first: true,
        })
    }

    fn can_enforce_schema(&self, request: &ModelRequest) -> bool {
        self.inner.can_enforce_schema(request)
    }
}

/// Returns `true` if an answer has no limit that the caller has set, and can be a text.
fn has_service_limit(request: &ModelRequest) -> bool {
    let options = &request.options;
    options.max_output_tokens.is_none()
        && options.response_format.is_none()
        && matches!(request.tool_choice, ToolChoice::Auto | ToolChoice::None)
}

struct Parts<M> {
    model: Arc<M>,
    /// `None` if the answer can't go on: it has more than text.
    request: Option<ModelRequest>,
    stream: Option<ModelStream>,
    said: String,
    /// The usage of the parts that are complete.
    earlier: Usage,
    /// The usage of all parts so far.
    usage: Usage,
    /// The end of a text, which a further part continues.
    end: Option<ModelDelta>,
    /// What is passed on next.
    out: VecDeque<ModelDelta>,
    /// The present part has reached the limit.
    is_cut: bool,
    left: u32,
    is_first: bool,
}

impl<M: Model> Parts<M> {
    /// Passes a delta on, unless it says that the part is cut and another one follows.
    fn pass(&mut self, delta: ModelDelta) {
        let delta = match delta {
            ModelDelta::Usage(usage) => {
                self.usage = self.earlier + usage;
                self.out.push_back(ModelDelta::Usage(self.usage));
                return;
            }
            ModelDelta::Stop(StopReason::Length) if self.can_go_on() => {
                (self.is_cut, self.end) = (true, None);
                return;
            }
            // They come between the parts of one text, which stays one block.
            ModelDelta::RateLimits(_)
            | ModelDelta::RateLimitWait { .. }
            | ModelDelta::RateLimitPassed { .. }
            | ModelDelta::InProgress => return self.out.push_back(delta),
            delta => delta,
        };
        self.out.extend(self.end.take());
        match delta {
            ModelDelta::BlockEnd { ref opaque } if opaque.is_empty() => self.end = Some(delta),
            ModelDelta::Text(ref text) => {
                self.said.push_str(text);
                self.out.push_back(delta);
            }
            ModelDelta::CallStart { .. } | ModelDelta::DataStart { .. } => {
                self.request = None;
                self.out.push_back(delta);
            }
            delta => self.out.push_back(delta),
        }
    }

    fn can_go_on(&self) -> bool {
        self.left > 0 && self.request.is_some() && !self.said.trim().is_empty()
    }

    /// Begins the next part.
    fn go_on(&mut self) {
        let Some(mut request) = self.request.clone() else { return };
        request.messages.push(Arc::new(Message::assistant(&*self.said)));
        request.messages.push(Arc::new(Message::user(GO_ON)));
        self.stream = Some(self.model.stream(request));
        (self.earlier, self.is_first) = (self.usage, false);
        self.left -= 1;
        self.out.push_back(ModelDelta::Continued);
    }
}

impl<M: Model> Stream for Parts<M> {
    type Item = Result<ModelDelta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let me = &mut *self;
        loop {
            if let Some(delta) = me.out.pop_front() {
                return Poll::Ready(Some(Ok(delta)));
            }
            let Some(stream) = &mut me.stream else { return Poll::Ready(None) };
            match ready!(stream.as_mut().poll_next(cx)) {
                Some(Ok(delta)) => me.pass(delta),
                Some(Err(error)) => {
                    me.stream = None;
                    let is_over = !me.is_first && !error.is_cut();
                    let end = if is_over { Ok(ModelDelta::Stop(StopReason::Length)) } else { Err(error) };
                    return Poll::Ready(Some(end));
                }
                None if mem::take(&mut me.is_cut) => me.go_on(),
                None => {
                    me.stream = None;
                    me.out.extend(me.end.take());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
