//! `agent_list`: the children below the caller.

use std::sync::Arc;

use mainstem_tool::{Json, Tool, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{error::SpawnError, member::Member};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "List your subagents: agent_key, agent_id, label, depth, status, turns, last activity.";
    Arc::new(
        tool_fn("agent_list", description, |cx, List {}| async move {
            let (cx, member) = Member::of_call(&cx)?;
            Ok::<_, SpawnError>(Json(member.fleet.roster.list(Some(cx.session_id()))))
        })
        .with_read_only(true)
        .with_polled(true),
    )
}
