//! `agent_list`: who is there.

use std::sync::Arc;

use mainstem_tool::{Json, Tool, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use super::engine;
use crate::{error::SpawnError, member::Member};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "List your subagents: agent_key, agent_id, label, depth, status, turns, last activity.";
    Arc::new(
        tool_fn("agent_list", description, |cx, List {}| async move {
            let cx = engine(&cx)?;
            Ok::<_, SpawnError>(Json(Member::of(cx)?.fleet.roster.list(Some(cx.session_id()))))
        })
        .with_read_only(true),
    )
}
