//! `task_cancel`: stop a task.

use std::{sync::Arc, time::Duration};

use mainstem_event::CancelReason;
use mainstem_tool::{Tool, ToolOutput, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{delivery::task_text, error::SpawnError, member::Member};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cancel {
    /// Which task.
    task_id: String,
}

/// How long to wait for the acknowledgement: longer than the grace of an agent.
const ACKNOWLEDGED: Duration = Duration::from_secs(30);

pub(super) fn tool() -> Arc<dyn Tool> {
    let description =
        "Stop a background task. Returns once it has stopped; what its agent said until then is kept.";
    Arc::new(tool_fn("task_cancel", description, |cx, Cancel { task_id }: Cancel| async move {
        let (cx, member) = Member::of_call(&cx)?;
        let fleet = &member.fleet;
        let before = member.task(cx, &task_id).await?;
        if before.is_over() {
            fleet.told_by_tool(cx, std::slice::from_ref(&before));
            let text = format!("It had ended before, and stays as it is.\n{}", task_text(&before));
            return Ok(ToolOutput::from(text));
        }
        let task = fleet.tasks.cancel(&before.id, &CancelReason::agent(cx.agent()), ACKNOWLEDGED).await?;
        if !task.is_over() {
            let text = format!("It was asked to stop and has not yet.\n{}", task_text(&task));
            return Ok(ToolOutput::failed(text));
        }
        fleet.told_by_tool(cx, std::slice::from_ref(&task));
        Ok::<_, SpawnError>(ToolOutput::from(task_text(&task)))
    }))
}
