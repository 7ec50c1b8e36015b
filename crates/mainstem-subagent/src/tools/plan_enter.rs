//! `plan_enter`: only tools that change nothing run, until there is a plan.

use std::sync::Arc;

use mainstem_policy::PlanMode;
use mainstem_tool::{Tool, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{error::SpawnError, member::Member};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Enter {}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description =
        "Begin planning: until plan_exit, you and your subagents can only run tools that change nothing.";
    Arc::new(
        tool_fn("plan_enter", description, |cx, Enter {}| async move {
            let (cx, member) = Member::of_call(&cx)?;
            member.fleet.set_plan_mode(PlanMode::On, cx.sink().log());
            Ok::<_, SpawnError>("You are planning. Look around, make a plan, then call plan_exit with it.")
        })
        .with_read_only(true),
    )
}
