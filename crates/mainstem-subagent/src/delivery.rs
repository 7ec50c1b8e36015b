//! Telling a parent which of its background tasks have ended: before its very next model call, once.

mod text;

use std::sync::Arc;

use mainstem_event::EventKind;
use mainstem_message::{Message, Role, SessionId, TaskId};
use mainstem_model::ModelRequest;
use mainstem_task::{TaskError, TaskRecord};
use mainstem_tool::RunContext;

use crate::Fleet;

/// How many ends one message tells; the rest come before the next call.
const MOST: usize = 10;

impl Fleet {
    /// Adds what has ended to the request and to the conversation. Returns the tasks that the model is told of by this request.
    ///
    /// What stands in the history already was told, even if the model call for which it was added failed: it is only marked then.
    pub(crate) async fn deliver(
        &self,
        cx: &RunContext,
        request: &mut ModelRequest,
    ) -> Result<Vec<TaskId>, TaskError> {
        let ended = self.tasks.undelivered(cx.session_id()).await?;
        let (told, untold): (Vec<_>, Vec<_>) =
            ended.into_iter().partition(|task| is_told(&request.messages, &task.id));
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
        Ok(told.iter().chain(now).map(|task| task.id.clone()).collect())
    }

    /// Whether tasks of the agent with this session have ended of which its conversation says nothing.
    pub async fn has_news(&self, session: &SessionId, said: &[Arc<Message>]) -> bool {
        let ended = self.tasks.undelivered(session).await.unwrap_or_default();
        ended.iter().any(|task| !is_told(said, &task.id))
    }

    /// The model has read of them.
    pub(crate) async fn mark_delivered(&self, tasks: &[TaskId]) {
        for task in tasks {
            if let Err(error) = self.tasks.mark_delivered(task).await {
                tracing::warn!(%task, %error, "that its parent was told could not be recorded");
            }
        }
    }
}

/// Whether a task's end stands in the conversation. Nothing that a child says can look like that: it is escaped.
fn is_told(messages: &[Arc<Message>], task: &TaskId) -> bool {
    let mut said = messages.iter().rev().filter(|message| message.role == Role::User);
    said.any(|message| text::tells_of(&message.text(), task))
}

/// What a task came to, for the model that asks for it.
pub(crate) fn task_text(record: &TaskRecord) -> String {
    text::of_task(record)
}

#[cfg(test)]
mod tests;
