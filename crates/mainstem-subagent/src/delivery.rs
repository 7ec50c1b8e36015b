//! Delivery: reports to a parent, once and before its next model call, which of its background
//! tasks have ended.
//!
//! A task's record is marked as delivered after the event with the report is committed. A crash in
//! between loses the mark, never the report: the conversation is searched for it.

pub(crate) mod tasks;
mod text;

use std::sync::Arc;

use mainstem_event::EventKind;
use mainstem_message::{BlockId, Message, Role, SessionId, TaskId};
use mainstem_model::ModelRequest;
use mainstem_react::RunContext;
use mainstem_task::{TaskError, TaskRecord};
use mainstem_tool::unless;

use crate::fleet::Fleet;

/// How many ends one message reports; the rest come before the next call.
const MOST: usize = 10;

/// The tasks whose ends a request reports to the model.
#[derive(Debug, Default)]
pub(crate) struct Told {
    tasks: Vec<TaskId>,
    /// The number of the last event that reports one.
    seq: u64,
}

impl Fleet {
    /// Adds the ends of tasks to the request and to the conversation.
    ///
    /// Ends that the conversation already has are not added again, even if the model call for which
    /// they were added has failed.
    pub(crate) async fn deliver(
        &self,
        cx: &RunContext,
        request: &mut ModelRequest,
    ) -> Result<Told, TaskError> {
        let ended = self.tasks.undelivered(cx.session_id()).await?;
        let (told, untold): (Vec<_>, Vec<_>) =
            ended.into_iter().partition(|task| self.is_told(&request.messages, &task.id));
        let (now, later) = untold.split_at(untold.len().min(MOST));
        if !now.is_empty() {
            let hint = text::reminder(now, later.len());
            let block_id = BlockId::from_lossy(format!("task_delivery-{}", now[0].id));
            cx.emit(EventKind::HintBlock {
                block_id,
                hint_source: "task_delivery".into(),
                hint: hint.clone(),
            });
            request.messages.push(Arc::new(Message::user(hint)));
        }
        let tasks = told.iter().chain(now).map(|task| task.id.clone()).collect();
        Ok(Told { tasks, seq: cx.sink().log().last_seq() })
    }

    /// Returns `true` if tasks of the agent with this session have ended that its conversation does
    /// not report.
    pub async fn has_news(&self, session: &SessionId, said: &[Arc<Message>]) -> bool {
        let ended = self.tasks.undelivered(session).await.unwrap_or_default();
        ended.iter().any(|task| !self.is_told(said, &task.id))
    }

    /// Notes which ends a tool's result reports to the caller. Tasks of other agents, which the
    /// root may read, are left out: their parents have yet to be told.
    pub(crate) fn told_by_tool(&self, cx: &RunContext, tasks: &[TaskRecord]) {
        let own = tasks.iter().filter(|task| task.parent_session_id == *cx.session_id());
        own.filter(|task| task.is_undelivered()).for_each(|task| _ = self.told.insert(task.id.clone()));
    }

    /// Marks the records as delivered once the log has committed the report. If it can't, or if the
    /// run is cancelled first, the records stay as they are.
    pub(crate) async fn mark_delivered(&self, cx: &RunContext, told: &Told) {
        if told.tasks.is_empty() {
            return;
        }
        let is_committed = unless(cx.cancelled(), cx.sink().log().until_committed(told.seq)).await;
        if is_committed != Some(true) {
            return;
        }
        for task in &told.tasks {
            match self.tasks.mark_delivered(task).await {
                Ok(_) => _ = self.told.remove(task),
                Err(error) => tracing::warn!(%task, %error, "a task could not be marked as delivered"),
            }
        }
    }

    /// Returns `true` if the conversation reports a task's end. A child's text can't imitate a
    /// report, because it is escaped.
    fn is_told(&self, messages: &[Arc<Message>], task: &TaskId) -> bool {
        let mut said = messages.iter().rev().filter(|message| message.role == Role::User);
        self.told.contains(task) || said.any(|message| text::tells_of(&message.text(), task))
    }
}

/// Returns all about a task, for `task_output` and `task_wait`.
pub(crate) fn task_text(record: &TaskRecord) -> String {
    text::of_task(record)
}

#[cfg(test)]
mod tests;
