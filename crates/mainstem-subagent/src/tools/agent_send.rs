//! `agent_send`: tell a child something further.

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
    /// What to tell it.
    message: String,
    /// When it shall read it, if it is at work: `queue` after its present turn, in a turn of its own; `steer` before its next step;
    /// `interrupt` at once. `queue` unless said otherwise.
    #[serde(default)]
    mode: SendMode,
    /// How many seconds to wait for the reply: 30 unless said otherwise, 600 at most; then the child goes on in the background. 0 does not
    /// wait at all.
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Send a further message to a subagent and wait for its reply; it still knows its conversation. One that is at work \
                       can be steered or interrupted. Give exactly one of agent_key and label.";
    Arc::new(tool_fn("agent_send", description, |cx, send: Send| async move {
        let (cx, member) = Member::of_call(&cx)?;
        let Send { agent_key, label, message, mode, timeout_seconds } = send;
        let key = member.fleet.roster.find(agent_key.as_deref(), label.as_deref(), Some(cx.session_id()))?;
        let report = member.tell(cx, &key, message, mode, timeout_seconds).await?;
        Ok::<ToolOutput, SpawnError>(report.into())
    }))
}
