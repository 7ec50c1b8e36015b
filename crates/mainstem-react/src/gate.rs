//! What stands before every tool of a run, whatever agent calls it.

use async_trait::async_trait;
use mainstem_message::ToolCallId;
use mainstem_tool::ToolOutput;
use serde_json::Value;

use crate::RunContext;

/// Decides whether tool calls may run. It belongs to the run, not to an agent, so that no agent is
/// without it: see [`RunContextBuilder::gate`](crate::RunContextBuilder::gate).
#[async_trait]
pub trait Gate: Send + Sync + 'static {
    /// Lets a call pass, as it is or with other arguments. It may wait, such as for a person; it is
    /// dropped with the call.
    ///
    /// # Errors
    /// What the model gets in place of the tool's result.
    async fn pass(&self, cx: &RunContext, call: Passing<'_>) -> Result<Option<Value>, ToolOutput>;
}

/// A call before the gate, of a tool that exists, with arguments that fit its schema.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by the loop, read by gates")]
pub struct Passing<'a> {
    /// The call.
    pub id: &'a ToolCallId,
    /// The tool's name.
    pub name: &'a str,
    /// Its arguments.
    pub arguments: &'a Value,
    /// Whether the tool changes nothing.
    pub is_read_only: bool,
}
