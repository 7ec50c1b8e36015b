//! What stands behind a tool's context.

use std::{
    any::{Any, TypeId},
    sync::Arc,
};

use mainstem_event::{EventSource, Settle, Timestamp};
use mainstem_message::{RunId, SessionId, ToolCallId};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// What makes a tool call: an agent's loop, or a test. A [`ToolContext`](crate::ToolContext) shows
/// it to the tool; the methods have the meaning of the context's methods of the same name.
pub trait ToolHost: Any + Send + Sync {
    /// The id of the call.
    fn call_id(&self) -> &ToolCallId;

    /// The id of the calling agent.
    fn agent(&self) -> &str;

    /// The calling agent's instance; `None` for the root.
    fn source(&self) -> Option<&EventSource>;

    /// The calling agent's own session.
    fn session_id(&self) -> &SessionId;

    /// The run.
    fn run_id(&self) -> Option<&RunId>;

    /// The user on whose behalf the agent works.
    fn user(&self) -> Option<&str>;

    /// What the caller of the run attached to it.
    fn attributes(&self) -> &Map<String, Value>;

    /// The application's value of a type.
    fn value(&self, of: TypeId) -> Option<Arc<dyn Any + Send + Sync>>;

    /// The current time.
    fn now(&self) -> Timestamp;

    /// When the call is asked to stop at the earliest; `None` if its time has no limit.
    fn deadline(&self) -> Option<Timestamp>;

    /// What asks the call to stop.
    fn cancellation(&self) -> &CancellationToken;

    /// Sends a part of the result. The future waits while the reader is behind.
    fn progress(&self, text: String) -> Settle<'_>;
}

#[cfg(test)]
pub(crate) mod tests;
