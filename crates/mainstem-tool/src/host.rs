//! The host of a tool's context.

use std::{
    any::{Any, TypeId},
    sync::Arc,
};

use mainstem_event::{EventSource, Settle, Timestamp};
use mainstem_message::{RunId, SessionId, ToolCallId};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// The caller of a tool: an agent's loop, or a test. The methods are those of
/// [`ToolContext`](crate::ToolContext) with the same name.
pub trait ToolHost: Any + Send + Sync {
    /// Returns the id of the call.
    fn call_id(&self) -> &ToolCallId;

    /// Returns the id of the calling agent.
    fn agent(&self) -> &str;

    /// Returns the calling agent's instance; `None` for the root.
    fn source(&self) -> Option<&EventSource>;

    /// Returns the calling agent's own session.
    fn session_id(&self) -> &SessionId;

    /// Returns the run.
    fn run_id(&self) -> Option<&RunId>;

    /// Returns the user on whose behalf the agent works.
    fn user(&self) -> Option<&str>;

    /// Returns the attributes of the run.
    fn attributes(&self) -> &Map<String, Value>;

    /// Returns the application's value of a type.
    fn value(&self, of: TypeId) -> Option<Arc<dyn Any + Send + Sync>>;

    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Returns when the call is cancelled at the earliest; `None` without a limit.
    fn deadline(&self) -> Option<Timestamp>;

    /// Returns the token that cancels the call.
    fn cancellation(&self) -> &CancellationToken;

    /// Sends a part of the result. The future waits while the reader is behind.
    fn progress(&self, text: String) -> Settle<'_>;
}

#[cfg(test)]
pub(crate) mod tests;
