//! The trait `Model`.

use std::{pin::Pin, sync::Arc};

use futures_core::Stream;

use crate::{ModelDelta, ModelError, ModelRequest};

/// The items of a model call, as they arrive.
///
/// The stream ends after its first error. Dropping it ends the call: a provider closes the
/// connection, so that further tokens are not paid for.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelDelta, ModelError>> + Send>>;

/// A language model.
///
/// An implementation is a value with its settings, without a conversation. One value serves many
/// concurrent calls.
///
/// ```
/// use futures_util::stream;
/// use mainstem_message::StopReason;
/// use mainstem_model::{Model, ModelDelta, ModelRequest, ModelStream};
///
/// /// Repeats the last message.
/// struct Echo;
///
/// impl Model for Echo {
///     fn name(&self) -> &str {
///         "echo"
///     }
///
///     fn stream(&self, request: ModelRequest) -> ModelStream {
///         let said = request.messages.last().map(|message| message.text()).unwrap_or_default();
///         let deltas = [ModelDelta::Text(said), ModelDelta::Stop(StopReason::Stop)];
///         Box::pin(stream::iter(deltas.map(Ok)))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a language model",
    note = "implement `Model::stream`, or pass a provider such as `OpenAi::new(\"gpt-4o-mini\")` or a `ScriptedModel`"
)]
pub trait Model: Send + Sync + 'static {
    /// Returns the model's name, such as `gpt-4o-mini`.
    fn name(&self) -> &str;

    /// Returns its vendor, as OpenTelemetry's conventions name it in `gen_ai.provider.name`:
    /// `openai`, `gcp.gemini`; `None` if that is unknown.
    fn provider(&self) -> Option<&str> {
        None
    }

    /// Calls the model. The first poll of the stream connects.
    fn stream(&self, request: ModelRequest) -> ModelStream;

    /// Returns `true` if its vendor enforces a
    /// [`ResponseFormat::JsonSchema`](crate::ResponseFormat::JsonSchema) in the answer to this
    /// request. Otherwise the answer is requested as the arguments of a tool.
    fn can_enforce_schema(&self, _request: &ModelRequest) -> bool {
        false
    }
}

#[deny(clippy::missing_trait_methods, reason = "a default would hide the model's own")]
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

    fn can_enforce_schema(&self, request: &ModelRequest) -> bool {
        (**self).can_enforce_schema(request)
    }
}
