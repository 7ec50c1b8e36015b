//! `agent_spawn`: start a child, get its reply.

use std::sync::Arc;

use mainstem_tool::{Tool, ToolOutput, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Fleet, SpawnError, launch::Order};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Spawn {
    /// Which agent to start.
    agent_id: String,
    /// What it shall do, with everything it needs to know.
    task: String,
    /// A short name of your own for it, unique in this session.
    #[serde(default)]
    label: Option<String>,
}

impl From<Spawn> for Order {
    fn from(Spawn { agent_id, task, label }: Spawn) -> Self {
        Self { agent_id, task, label }
    }
}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Start a subagent on a task and wait for its reply. Calls of one turn run at once. The result begins with its \
                       agent_key, for agent_send.";
    Arc::new(tool_fn("agent_spawn", description, |cx, spawn: Spawn| async move {
        let report = Fleet::of(&cx)?.spawn(&cx, spawn.into()).await?;
        Ok::<ToolOutput, SpawnError>(report.into())
    }))
}
