//! `agent_send`: ask a child something further.

use std::sync::Arc;

use mainstem_tool::{Tool, ToolOutput, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Fleet, SpawnError};

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
    /// How many seconds to wait for the reply: 30 unless said otherwise, 600 at most; then the child goes on in the background. 0 does not
    /// wait at all.
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Send a further message to a subagent that has answered, and wait for its reply. It still knows its \
                       conversation. Give exactly one of agent_key and label.";
    Arc::new(tool_fn("agent_send", description, |cx, send: Send| async move {
        let fleet = Fleet::of(&cx)?;
        let key =
            fleet.roster.find(send.agent_key.as_deref(), send.label.as_deref(), Some(cx.session_id()))?;
        let report = fleet.send(&cx, &key, send.message, send.timeout_seconds).await?;
        Ok::<ToolOutput, SpawnError>(report.into())
    }))
}
