//! `agent_spawn`: starts a child and returns its reply.

use std::sync::Arc;

use mainstem_tool::{Tool, ToolOutput, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{error::SpawnError, member::Member, spawn::launch::Order};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Spawn {
    /// Which agent to start.
    agent_id: String,
    /// What it shall do, with everything it needs to know.
    task: String,
    /// A short name of your own for it, unique in this session.
    #[serde(default)]
    label: Option<String>,
    /// How many seconds to wait for the reply: 30 by default, 600 at most; then the child goes on
    /// in the background. 0 does not wait at all.
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Start a subagent on a task and wait for its reply. Calls of one turn run at once. The result begins with its \
                       agent_key, for agent_send. With timeout_seconds 0, or when the time is over, it works in the background: the \
                       result has a task_id then, and you are told when the task has ended.";
    Arc::new(tool_fn("agent_spawn", description, |cx, spawn: Spawn| {
        let Spawn { agent_id, task, label, timeout_seconds } = spawn;
        async move {
            let (cx, member) = Member::of_call(&cx)?;
            let order = Box::new(Order { entry: member.admit(cx, &agent_id)?, task, label });
            let report = member.spawn(cx, order, timeout_seconds).await?;
            Ok::<ToolOutput, SpawnError>(report.into())
        }
    }))
}
