//! What is known of a task, and how it may change. Pure.

use std::sync::Arc;

use mainstem_event::{TaskStatus, Timestamp};
use mainstem_message::{AgentKey, Failure, SessionId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ExecutorId, IllegalChange, status};

/// One background task. The same for one that began in the background, one that was promoted, and one on another machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskRecord {
    /// The handle.
    pub id: TaskId,
    /// The root session, whose log has its events.
    pub root_session_id: SessionId,
    /// The agent that is told of its end.
    pub parent_agent_id: Arc<str>,
    /// That agent's own session.
    pub parent_session_id: SessionId,
    /// The child that works on it.
    pub agent_key: AgentKey,
    /// What the child is an instance of.
    pub agent_id: Arc<str>,
    /// The name that the parent gave the child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What the child was asked.
    pub task: String,
    /// How it stands.
    pub status: TaskStatus,
    /// Rises by one with each change.
    pub version: u64,
    /// Who executes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorId>,
    /// Rises with each executor; one that has been overtaken can change nothing.
    #[serde(default)]
    pub fence: u64,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Who wants it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<CancelRequest>,
    /// When it became a task.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When its parent was told of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
}

/// That a task shall stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelRequest {
    /// Who asked for it, in words for people.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// What happens to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskChange {
    /// Work begins, or goes on after a confirmation.
    Run,
    /// It waits for a person.
    WaitForConfirm,
    /// It has a result.
    Complete {
        /// The child's reply.
        result: String,
    },
    /// It failed.
    Fail {
        /// How.
        error: Failure,
    },
    /// It was stopped.
    Cancel {
        /// By whom, in words for people.
        by: String,
    },
    /// Somebody wants it stopped; nothing else changes.
    RequestCancel {
        /// Who, in words for people.
        by: String,
    },
    /// Its parent was told of its end.
    Deliver,
    /// Another executor takes it over.
    Claim {
        /// Which.
        executor: ExecutorId,
    },
}

impl TaskRecord {
    /// Whether nothing more will happen to it.
    pub fn is_over(&self) -> bool {
        self.status.is_terminal()
    }

    /// Whether it is over and its parent was not yet told.
    pub fn is_undelivered(&self) -> bool {
        self.is_over() && self.delivered_at.is_none()
    }

    /// Makes a change at a time, and raises the version. What is asked of a task that is over (to be cancelled again, to be delivered
    /// twice) changes nothing and is no error.
    ///
    /// # Errors
    /// A change of status that is not legal; the record then stays as it was.
    pub fn apply(&mut self, change: TaskChange, now: Timestamp) -> Result<(), IllegalChange> {
        match change {
            TaskChange::Run => self.become_(TaskStatus::Running)?,
            TaskChange::WaitForConfirm => self.become_(TaskStatus::WaitingConfirm)?,
            TaskChange::Complete { result } => {
                self.become_(TaskStatus::Completed)?;
                self.result = Some(result);
            }
            TaskChange::Fail { error } => {
                self.become_(TaskStatus::Failed)?;
                self.error = Some(error);
            }
            TaskChange::Cancel { by } => {
                self.become_(TaskStatus::Cancelled)?;
                self.cancel.get_or_insert(CancelRequest { by, at: now });
            }
            TaskChange::RequestCancel { .. } if self.is_over() || self.cancel.is_some() => return Ok(()),
            TaskChange::RequestCancel { by } => self.cancel = Some(CancelRequest { by, at: now }),
            TaskChange::Deliver if !self.is_undelivered() => return Ok(()),
            TaskChange::Deliver => self.delivered_at = Some(now),
            TaskChange::Claim { .. } if self.is_over() => self.become_(TaskStatus::Running)?,
            TaskChange::Claim { executor } => (self.executor, self.fence) = (Some(executor), self.fence + 1),
        }
        self.version += 1;
        self.updated_at = now;
        Ok(())
    }

    fn become_(&mut self, to: TaskStatus) -> Result<(), IllegalChange> {
        let from = self.status;
        if !status::allows(from, to) {
            return Err(IllegalChange { id: self.id.clone(), from, to });
        }
        self.status = to;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
