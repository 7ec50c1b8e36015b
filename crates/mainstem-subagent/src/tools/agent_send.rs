//! `agent_send`: sends a child a further message.

use std::sync::Arc;

use mainstem_event::SendMode;
use mainstem_tool::{Tool, ToolOutput, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{error::SpawnError, member::Member};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Send {
    /// The child, by the agent_key of an earlier result.
    #[serde(default)]
    agent_key: Option<String>,
    /// The child, by the label that you gave it.
    #[serde(default)]
    label: Option<String>,
    /// The message.
    message: String,
    /// When it reads the message, if it is running: `queue` (default) after its present turn, in a
    /// turn of its own, and not at all if that turn does not end within timeout_seconds; `steer`
    /// before its next step; `interrupt` at once.
    #[serde(default)]
    mode: SendMode,
    /// How many seconds to wait for the reply: 30 by default, 600 at most; then the child goes on
    /// in the background. 0 does not wait at all.
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Send a further message to a subagent and wait for its reply; it still knows its conversation. One that is running \
                       can be steered or interrupted. Give exactly one of agent_key and label.";
    Arc::new(tool_fn("agent_send", description, |cx, send: Send| async move {
        let (cx, member) = Member::of_call(&cx)?;
        let Send { agent_key, label, message, mode, timeout_seconds } = send;
        let key = member.fleet.roster.find(agent_key.as_deref(), label.as_deref(), Some(cx.session_id()))?;
        let report = member.tell(cx, &key, message, mode, timeout_seconds).await?;
        Ok::<ToolOutput, SpawnError>(report.into())
    }))
}
