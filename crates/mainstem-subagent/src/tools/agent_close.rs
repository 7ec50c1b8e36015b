//! `agent_close`: stops a child and frees its label.

use std::sync::Arc;

use mainstem_event::CancelReason;
use mainstem_tool::{Tool, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{error::SpawnError, member::Member};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Close {
    /// The child, by the agent_key of an earlier result.
    #[serde(default)]
    agent_key: Option<String>,
    /// The child, by the label that you gave it.
    #[serde(default)]
    label: Option<String>,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Stop a subagent, if it is running, with all below it, and forget it; its label is free then. Give exactly one of \
                       agent_key and label.";
    Arc::new(tool_fn("agent_close", description, |cx, close: Close| async move {
        let (cx, member) = Member::of_call(&cx)?;
        let fleet = &member.fleet;
        let key =
            fleet.roster.find(close.agent_key.as_deref(), close.label.as_deref(), Some(cx.session_id()))?;
        fleet.close(cx, &key, &CancelReason::agent(cx.agent())).await?;
        Ok::<_, SpawnError>(format!("agent_key: {key}\nstatus: closed"))
    }))
}
