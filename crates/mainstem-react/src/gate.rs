//! The gate of a run's tool calls.

use async_trait::async_trait;
use mainstem_message::ToolCallId;
use mainstem_tool::ToolOutput;
use serde_json::Value;

use crate::RunContext;

/// Decides whether tool calls may run. It belongs to the run and thus applies to all of its agents:
/// see [`RunContextBuilder::with_gate`](crate::RunContextBuilder::with_gate).
#[async_trait]
pub trait Gate: Send + Sync + 'static {
    /// Admits a call, as it is or with other arguments. It may wait, such as for a person; it is
    /// dropped with the call.
    ///
    /// # Errors
    /// The result that the model gets instead of the tool's.
    async fn pass(&self, cx: &RunContext, call: Passing<'_>) -> Result<Option<Value>, ToolOutput>;
}

/// A call at the gate: the tool exists, and the arguments fit its schema.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by the loop, read by gates")]
pub struct Passing<'a> {
    /// The call.
    pub id: &'a ToolCallId,
    /// The tool's name.
    pub name: &'a str,
    /// Its arguments.
    pub arguments: &'a Value,
    /// Whether the tool is read-only.
    pub is_read_only: bool,
}
