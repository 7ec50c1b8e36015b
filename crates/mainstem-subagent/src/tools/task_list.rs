//! `task_list`: the caller's tasks.

use std::sync::Arc;

use mainstem_event::TaskStatus;
use mainstem_react::RunContext;
use mainstem_task::{TaskFilter, TaskRecord};
use mainstem_tool::{Tool, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{error::SpawnError, member::Member};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Only tasks that stand so.
    #[serde(default)]
    status: Option<TaskStatus>,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "List your background tasks: task_id, agent, status, since when.";
    Arc::new(
        tool_fn("task_list", description, |cx, List { status }: List| async move {
            let (cx, member) = Member::of_call(&cx)?;
            let mine = TaskFilter::of_parent(cx.session_id().clone());
            let filter = status.into_iter().fold(mine, TaskFilter::with_status);
            let tasks = member.fleet.tasks.list(&filter).await?;
            let lines: Vec<_> = tasks.iter().map(line).collect();
            let which = status.map(|status| format!(" that are {}", status.as_str())).unwrap_or_default();
            let head = if lines.is_empty() {
                format!("You have no background tasks{which}.")
            } else {
                format!("Background tasks{which} ({}):", lines.len())
            };
            Ok::<_, SpawnError>([head].into_iter().chain(lines).collect::<Vec<_>>().join("\n"))
        })
        .with_read_only(true)
        .with_polled(true),
    )
}

/// Returns a line for each task of the agent that has not ended; none if the store fails.
pub(crate) async fn open(cx: &RunContext, member: &Member) -> Vec<String> {
    let filter = TaskFilter::of_parent(cx.session_id().clone());
    let tasks = member.fleet.tasks.list(&filter).await.unwrap_or_else(|error| {
        tracing::error!(%error, "can't see which tasks are running");
        Vec::new()
    });
    tasks.iter().filter(|task| !task.status.is_terminal()).map(line).collect()
}

fn line(task: &TaskRecord) -> String {
    let TaskRecord { id, agent_id, status, created_at, .. } = task;
    let label = task.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
    format!(
        "- task_id: {id}  agent: {agent_id}{label}  status: {}  created_at: {created_at}",
        status.as_str()
    )
}
