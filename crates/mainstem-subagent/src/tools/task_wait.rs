//! `task_wait`: the results of several tasks, once all have ended.

use std::{sync::Arc, time::Duration};

use mainstem_message::TaskId;
use mainstem_react::RunContext;
use mainstem_task::{TaskFilter, TaskRecord};
use mainstem_tool::{Tool, ToolOutput, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{engine, task_output::state};
use crate::{delivery::task_text, error::SpawnError, fleet::Fleet, member::Member, spawn::wait::LONGEST};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// Which tasks; all that have not ended yet unless said otherwise.
    #[serde(default)]
    task_ids: Option<Vec<String>>,
    /// How many seconds to wait at most: 60 unless said otherwise, 600 at most.
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

/// How long to wait unless the call says otherwise.
const USUAL: Duration = Duration::from_secs(60);

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Wait until background tasks have all ended, and get all their results. Wakes as soon as the last one ends.";
    Arc::new(
        tool_fn("task_wait", description, |cx, wait: Wait| async move {
            let cx = engine(&cx)?;
            let fleet = &Member::of(cx)?.fleet;
            let ids = match wait.task_ids {
                Some(ids) => ids.into_iter().map(TaskId::new).collect(),
                None => fleet.open_tasks(cx).await?,
            };
            if ids.is_empty() {
                return Ok(ToolOutput::from("You have no background task that has not ended."));
            }
            for id in &ids {
                fleet.task(cx, id).await?;
            }
            let time = wait.timeout_seconds.map_or(USUAL, Duration::from_secs).min(LONGEST);
            let tasks = fleet.await_tasks(cx, &ids, time).await?;
            fleet.told_by_tool(cx, &tasks);
            Ok::<_, SpawnError>(ToolOutput::from(text(&tasks, time)).with_state(state(&tasks)))
        })
        .with_read_only(true),
    )
}

fn text(tasks: &[TaskRecord], time: Duration) -> String {
    let open = tasks.iter().filter(|task| !task.is_over()).count();
    let head = match open {
        0 => format!("{0} of {0} tasks have ended.", tasks.len()),
        open => {
            format!("{open} of {} tasks had not ended after {} s and go on.", tasks.len(), time.as_secs())
        }
    };
    let all = tasks.iter().map(task_text);
    [head].into_iter().chain(all).collect::<Vec<_>>().join("\n---\n")
}

impl Fleet {
    async fn open_tasks(&self, cx: &RunContext) -> Result<Vec<TaskId>, SpawnError> {
        let all = self.tasks.list(&TaskFilter::of_parent(cx.session_id().clone())).await?;
        Ok(all.into_iter().filter(|task| !task.is_over()).map(|task| task.id).collect())
    }
}
