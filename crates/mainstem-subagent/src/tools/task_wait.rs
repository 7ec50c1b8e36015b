//! `task_wait`: the results of several tasks, once all have ended.

use std::{sync::Arc, time::Duration};

use mainstem_message::TaskId;
use mainstem_react::RunContext;
use mainstem_task::TaskRecord;
use mainstem_tool::{Tool, ToolOutput, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use super::task_output::state;
use crate::{delivery::task_text, error::SpawnError, member::Member, spawn::wait_time::LONGEST};

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
            let (cx, member) = Member::of_call(&cx)?;
            let fleet = &member.fleet;
            let ids = match wait.task_ids {
                Some(ids) => known(member, cx, &ids).await?,
                None => member.open_tasks(cx).await?,
            };
            if ids.is_empty() {
                return Ok(ToolOutput::from("You have no background task that has not ended."));
            }
            let time = wait.timeout_seconds.map_or(USUAL, Duration::from_secs).min(LONGEST);
            let tasks = member.await_tasks(cx, &ids, time).await?;
            fleet.told_by_tool(cx, &tasks);
            Ok::<_, SpawnError>(ToolOutput::from(text(&tasks, time)).with_state(state(&tasks)))
        })
        .with_read_only(true)
        .with_polled(true),
    )
}

/// Returns the ids of tasks that the agent may ask about.
async fn known(member: &Member, cx: &RunContext, ids: &[String]) -> Result<Vec<TaskId>, SpawnError> {
    let mut known = Vec::with_capacity(ids.len());
    for id in ids {
        known.push(member.task(cx, id).await?.id);
    }
    Ok(known)
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
