//! The background tasks of an agent: which it may ask about, how many there may be, and waiting for
//! their ends.

use std::time::Duration;

use mainstem_event::{Background, CancelReason};
use mainstem_message::TaskId;
use mainstem_model::ModelRequest;
use mainstem_react::RunContext;
use mainstem_task::{TaskError, TaskFilter, TaskRecord};

use crate::{error::SpawnError, member::Member};

impl Member {
    /// Returns a task that the agent may ask about, by the id that the model gives: its own, or for
    /// the root any of its session.
    pub(crate) async fn task(&self, cx: &RunContext, id: &str) -> Result<TaskRecord, SpawnError> {
        let id = id.parse().map_err(|_| SpawnError::UnknownTask { id: id.to_owned() })?;
        let task = self.fleet.tasks.get(&id).await?;
        let is_own = task.parent_session_id == *cx.session_id();
        let is_below = cx.depth() == 0 && task.root_session_id == *cx.session_id();
        if is_own || is_below { Ok(task) } else { Err(TaskError::Unknown { id }.into()) }
    }

    /// Returns the agent's own tasks that have not ended.
    pub(crate) async fn open_tasks(&self, cx: &RunContext) -> Result<Vec<TaskId>, SpawnError> {
        let own = TaskFilter::of_parent(cx.session_id().clone());
        let all = self.fleet.tasks.list(&own).await?;
        Ok(all.into_iter().filter(|task| !task.is_over()).map(|task| task.id).collect())
    }

    /// Waits with the agent's permit released, until tasks have ended or the time is over. Returns
    /// their records then.
    pub(crate) async fn await_tasks(
        &self,
        cx: &RunContext,
        ids: &[TaskId],
        time: Duration,
    ) -> Result<Vec<TaskRecord>, SpawnError> {
        let (tasks, released) =
            (&self.fleet.tasks, self.fleet.child_limit.release_while_waiting(self.caller(cx)));
        let over = tasks.wait(ids, time).await;
        released.reacquire().await;
        if let Some(records) = over? {
            return Ok(records);
        }
        let mut records = Vec::new();
        for id in ids {
            records.push(tasks.get(id).await?);
        }
        Ok(records)
    }

    /// Checks that one more background task may begin.
    pub(crate) fn check_task_limit(&self, cx: &RunContext) -> Result<(), SpawnError> {
        let live = self.fleet.tasks.live_below(cx.sink().log().session_id()).len();
        let max = self.fleet.limits().max_tasks;
        if live < max { Ok(()) } else { Err(SpawnError::TooManyTasks { max }) }
    }

    /// Does with background tasks what the run's options say when the root has its answer. Returns
    /// `true` if ends of tasks came in that the root should answer.
    pub(crate) async fn finish_tasks(&self, cx: &RunContext, request: &ModelRequest) -> bool {
        if cx.depth() > 0 || cx.is_cancelled() {
            return false;
        }
        let (root, tasks) = (cx.session_id(), &self.fleet.tasks);
        match self.options.background {
            Background::Detach => false,
            Background::Cancel => {
                tasks.cancel_below(root, &CancelReason::RunEnded);
                self.until_over(cx, tasks.live_below(root)).await;
                false
            }
            Background::Wait => {
                self.until_over(cx, tasks.live_of(root)).await;
                let news = self.fleet.has_news(root, &request.messages).await;
                if !news {
                    self.until_over(cx, tasks.live_below(root)).await;
                }
                news && !cx.is_cancelled()
            }
        }
    }

    /// Waits until tasks have ended or the run is cancelled.
    async fn until_over(&self, cx: &RunContext, tasks: Vec<TaskId>) {
        tokio::select! {
            biased;
            () = cx.cancelled() => {}
            _ = Box::pin(self.fleet.tasks.wait(&tasks, Duration::MAX)) => {}
        }
    }
}
