//! The trait.

use async_trait::async_trait;
use mainstem_message::ToolSpec;
use serde_json::Value;

use crate::{ToolContext, ToolError, ToolOutput};

/// Something a model can call.
///
/// One value serves every agent and every call at once; what differs between calls is in the
/// [`ToolContext`].
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "implement `Tool`, or wrap a function with `tool_fn(name, description, |cx, args: Args| …)`"
)]
pub trait Tool: Send + Sync + 'static {
    /// What a model is told about it. Asked once, when it joins a [`ToolSet`](crate::ToolSet).
    fn spec(&self) -> ToolSpec;

    /// Whether it changes nothing: only such tools run in plan mode.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Whether it must not run beside other calls of the same turn.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// Runs it. `arguments` fit the schema of [`spec`](Self::spec).
    ///
    /// An error goes to the model as the result; a panic is caught and does too. When the run is
    /// cancelled, the future sees [`ToolContext::cancelled`] and is dropped after a grace period;
    /// when the run's stream is dropped, it is dropped at once.
    async fn call(&self, cx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError>;
}
