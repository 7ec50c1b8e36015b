//! Telling a parent which of its background tasks have ended: before its very next model call,
//! once.
//!
//! A record says that its parent was told only after the event that tells it is committed. A crash
//! in between loses the record's change, never the message: what the log has is looked for in the
//! conversation.

mod text;

use std::sync::Arc;

use mainstem_event::EventKind;
use mainstem_message::{Message, Role, SessionId, TaskId};
use mainstem_model::ModelRequest;
use mainstem_react::RunContext;
use mainstem_task::{TaskError, TaskRecord};
use mainstem_tool::unless;

use crate::fleet::Fleet;

/// How many ends one message tells; the rest come before the next call.
const MOST: usize = 10;

/// The tasks whose ends a request tells the model.
#[derive(Debug, Default)]
pub(crate) struct Told {
    tasks: Vec<TaskId>,
    /// The number of the last event that tells of one.
    seq: u64,
}

impl Fleet {
    /// Adds the ends of tasks to the request and to the conversation.
    ///
    /// Ends that the conversation has already, even if the model call for which they were added
    /// failed, are not added again.
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
            let block_id = format!("task_delivery-{}", now[0].id).into();
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

    /// Returns `true` if tasks of the agent with this session have ended and its conversation does
    /// not tell of them.
    pub async fn has_news(&self, session: &SessionId, said: &[Arc<Message>]) -> bool {
        let ended = self.tasks.undelivered(session).await.unwrap_or_default();
        ended.iter().any(|task| !self.is_told(said, &task.id))
    }

    /// Notes which ends a tool's result tells the caller. Tasks of others, which the root may read,
    /// are left out: their parents are not told by that.
    pub(crate) fn told_by_tool(&self, cx: &RunContext, tasks: &[TaskRecord]) {
        let own = tasks.iter().filter(|task| task.parent_session_id == *cx.session_id());
        own.filter(|task| task.is_undelivered()).for_each(|task| _ = self.told.insert(task.id.clone()));
    }

    /// Records that the model has been told, as soon as the log has committed it. If the log can't,
    /// or the run is cancelled before, the records stay as they are.
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
                Err(error) => tracing::warn!(%task, %error, "could not record that the parent was told"),
            }
        }
    }

    /// Returns `true` if the conversation tells of a task's end. Nothing that a child says can look
    /// like that: it is escaped.
    fn is_told(&self, messages: &[Arc<Message>], task: &TaskId) -> bool {
        let mut said = messages.iter().rev().filter(|message| message.role == Role::User);
        self.told.contains(task) || said.any(|message| text::tells_of(&message.text(), task))
    }
}

/// What a task came to, for the model that asks for it.
pub(crate) fn task_text(record: &TaskRecord) -> String {
    text::of_task(record)
}

#[cfg(test)]
mod tests;
