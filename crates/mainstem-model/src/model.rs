//! The trait.

use std::{pin::Pin, sync::Arc};

use futures_core::Stream;

use crate::{ModelDelta, ModelError, ModelRequest};

/// What a call to a model yields, as it arrives.
///
/// The stream ends after its first error. Dropping it ends the call: a provider closes the connection, so that no further token is
/// paid for.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelDelta, ModelError>> + Send>>;

/// A language model.
///
/// An implementation is a value with its settings in it; it keeps no conversation. One value serves many calls at once.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a language model",
    note = "implement `Model::stream`, or pass a provider such as `OpenAi::new(\"gpt-4o-mini\")` or a `ScriptedModel`"
)]
pub trait Model: Send + Sync + 'static {
    /// The model's name as people know it: `gpt-4o-mini`.
    fn name(&self) -> &str;

    /// Its vendor, as OpenTelemetry's conventions name it in `gen_ai.provider.name`: `openai`, `gcp.gemini`; `None` if that is unknown.
    fn provider(&self) -> Option<&str> {
        None
    }

    /// Asks the model. Nothing happens before the stream is polled: connecting is its first poll.
    fn stream(&self, request: ModelRequest) -> ModelStream;

    /// Whether its vendor holds the answer to such a request to a [`ResponseFormat::JsonSchema`](crate::ResponseFormat::JsonSchema). If not,
    /// a form is asked for as the arguments of a tool.
    fn holds_schema(&self, _request: &ModelRequest) -> bool {
        false
    }
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn provider(&self) -> Option<&str> {
        (**self).provider()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        (**self).stream(request)
    }

    fn holds_schema(&self, request: &ModelRequest) -> bool {
        (**self).holds_schema(request)
    }
}
