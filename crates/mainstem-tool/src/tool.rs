//! The trait `Tool`.

use std::any::Any;

use async_trait::async_trait;
use mainstem_message::ToolSpec;
use serde_json::Value;

use crate::{ToolContext, ToolError, ToolOutput};

/// A tool that a model can call.
///
/// One value serves all agents and concurrent calls; the [`ToolContext`] has what differs between
/// calls.
///
/// ```
/// use mainstem_tool::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec, async_trait};
/// use serde_json::{Value, json};
///
/// /// A tool whose schema is known only when the program runs.
/// struct Lookup {
///     tables: Vec<String>,
/// }
///
/// #[async_trait]
/// impl Tool for Lookup {
///     fn spec(&self) -> ToolSpec {
///         let table = json!({ "type": "string", "enum": self.tables });
///         let parameters = json!({ "type": "object", "properties": { "table": table } });
///         ToolSpec::new("lookup", "Reads a table", parameters)
///     }
///
///     async fn call(&self, cx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError> {
///         cx.progress("reading\n").await;
///         Ok(format!("{} is empty", arguments["table"]).into())
///     }
/// }
/// ```
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "implement `Tool`, or wrap a function with `tool_fn(name, description, |cx, args: Args| …)`"
)]
pub trait Tool: Any + Send + Sync {
    /// Returns its name, description and schema. Called once, when it is added to a
    /// [`ToolSet`](crate::ToolSet).
    fn spec(&self) -> ToolSpec;

    /// Returns `true` if it changes nothing. Plan mode runs only such tools.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Returns `true` if a model may call it again and again while the result stays the same,
    /// because it looks for something that others do. An agent that repeats other calls is ended
    /// (`RepetitionLimits` of `mainstem-react`).
    fn is_polled(&self) -> bool {
        false
    }

    /// Returns `true` if its results are instructions rather than data: they stay whole when the
    /// conversation is compacted.
    fn is_lasting(&self) -> bool {
        false
    }

    /// Returns `true` if it must not run concurrently with other calls of the same turn.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// Runs it. `arguments` fit the schema of [`spec`](Self::spec).
    ///
    /// The model gets an error as the result, also for a panic. When the run is cancelled, the
    /// future sees [`ToolContext::cancelled`] and is dropped after a grace period; when the run's
    /// stream is dropped, it is dropped at once.
    async fn call(&self, cx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError>;
}
