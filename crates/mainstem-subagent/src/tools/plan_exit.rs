//! `plan_exit`: a person reads the plan and decides whether it is carried out.

use std::sync::Arc;

use mainstem_message::{ToolCall, ToolState};
use mainstem_policy::PlanMode;
use mainstem_tool::{Tool, ToolOutput, tool_fn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{error::SpawnError, member::Member};
use mainstem_event::Decision;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Exit {
    /// The plan, for the person who decides.
    plan: String,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "End planning. A person sees the plan and decides whether the work may begin.";
    Arc::new(
        tool_fn("plan_exit", description, |cx, Exit { plan }: Exit| async move {
            let id = cx.call_id().clone();
            let (cx, member) = Member::of_call(&cx)?;
            let fleet = &member.fleet;
            if fleet.plan_mode() == PlanMode::Off {
                return Ok(ToolOutput::from("You are not planning; go on."));
            }
            let call = ToolCall::new(id, "plan_exit", json!({ "plan": plan }).to_string());
            Ok::<_, SpawnError>(match member.ask(cx, call, None).await {
                Decision::Deny(reason) => {
                    ToolOutput::from(format!("The plan was not accepted: {reason}. You are still planning."))
                        .with_state(ToolState::Denied)
                }
                Decision::Allow => {
                    fleet.set_plan_mode(PlanMode::Off, cx.sink().log());
                    ToolOutput::from("The plan is accepted; carry it out.")
                }
                Decision::AllowWith(edited) => {
                    fleet.set_plan_mode(PlanMode::Off, cx.sink().log());
                    let plan = edited["plan"].as_str().map_or_else(|| edited.to_string(), str::to_owned);
                    ToolOutput::from(format!("The plan is accepted as follows; carry it out.\n{plan}"))
                }
            })
        })
        .with_read_only(true),
    )
}
