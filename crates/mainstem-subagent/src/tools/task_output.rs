//! `task_output`: the status of a task, and its result.

use std::{sync::Arc, time::Duration};

use mainstem_event::TaskStatus;
use mainstem_message::ToolState;
use mainstem_task::TaskRecord;
use mainstem_tool::{Tool, ToolOutput, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{delivery::task_text, error::SpawnError, member::Member, spawn::wait_time::LONGEST};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Output {
    /// Which task.
    task_id: String,
    /// Whether to wait for its end; true unless said otherwise.
    #[serde(default)]
    block: Option<bool>,
    /// How many seconds to wait at most: 30 unless said otherwise, 600 at most.
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Show a background task: its status, and its result or error if it has ended. Waits for the end unless block \
                       is false.";
    Arc::new(
        tool_fn("task_output", description, |cx, output: Output| async move {
            let (cx, member) = Member::of_call(&cx)?;
            let fleet = &member.fleet;
            let mut task = member.task(cx, &output.task_id).await?;
            if output.block.unwrap_or(true) && !task.is_over() {
                let time = output.timeout_seconds.map_or_else(|| fleet.limits().wait, Duration::from_secs);
                task = member.await_tasks(cx, &[task.id], time.min(LONGEST)).await?.remove(0);
            }
            fleet.told_by_tool(cx, std::slice::from_ref(&task));
            Ok::<_, SpawnError>(ToolOutput::from(task_text(&task)).with_state(state(&[task])))
        })
        .with_read_only(true)
        .with_polled(true),
    )
}

/// Returns `Error` if a task has failed, else `Running` if one is open. A cancelled task
/// counts as neither.
pub(super) fn state(tasks: &[TaskRecord]) -> ToolState {
    if tasks.iter().any(|task| task.status == TaskStatus::Failed) {
        ToolState::Error
    } else if tasks.iter().all(TaskRecord::is_over) {
        ToolState::Success
    } else {
        ToolState::Running
    }
}
