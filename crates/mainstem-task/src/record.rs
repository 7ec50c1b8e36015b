//! The record of a task, and its state machine. Pure.

use std::sync::Arc;

use mainstem_event::{TaskStatus, Timestamp};
use mainstem_message::{AgentKey, Failure, SessionId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ExecutorId, IllegalChange, status};

/// One background task: one that began in the background, one that was promoted, or one on another
/// machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskRecord {
    /// The task's id.
    pub id: TaskId,
    /// The root session, whose log has its events.
    pub root_session_id: SessionId,
    /// The agent that is notified of its end.
    pub parent_agent_id: Arc<str>,
    /// That agent's own session.
    pub parent_session_id: SessionId,
    /// The child that runs it.
    pub agent_key: AgentKey,
    /// The spec of the child.
    pub agent_id: Arc<str>,
    /// The name that the parent gave the child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The child's instructions.
    pub task: String,
    /// Its status.
    pub status: TaskStatus,
    /// Rises by one with each change.
    pub version: u64,
    /// Whether another executor can continue it when its executor has ended, because the child
    /// runs elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_resumable: bool,
    /// Who executes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorId>,
    /// Rises with each executor. An executor with a lower fence can't change the record.
    #[serde(default)]
    pub fence: u64,
    /// The child's reply; of a task that failed, what the child had done and said until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The request to cancel it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<CancelRequest>,
    /// When it became a task.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When its parent was notified of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
}

/// A request to cancel a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelRequest {
    /// Who requested it, for display.
    pub by: String,
    /// When it was requested.
    pub at: Timestamp,
}

/// A change of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskChange {
    /// Work begins, or goes on after a confirmation.
    Run,
    /// It waits for a person.
    WaitForConfirm,
    /// It completed.
    Complete {
        /// The child's reply.
        result: String,
    },
    /// It failed.
    Fail {
        /// The failure.
        error: Failure,
        /// What the child had done and said until then.
        partial: Option<String>,
    },
    /// It was cancelled.
    Cancel {
        /// Who cancelled it, for display.
        by: String,
    },
    /// A cancel is requested; the status stays as it is.
    RequestCancel {
        /// Who requests it, for display.
        by: String,
    },
    /// Its parent was notified of its end.
    Deliver,
    /// Another executor takes it over.
    Claim {
        /// The new executor.
        executor: ExecutorId,
    },
}

impl TaskRecord {
    /// Returns `true` if the status is terminal.
    pub fn is_over(&self) -> bool {
        self.status.is_terminal()
    }

    /// Returns `true` if it is over and its parent was not yet notified.
    pub fn is_undelivered(&self) -> bool {
        self.is_over() && self.delivered_at.is_none()
    }

    /// Applies a change at a time, and raises the version. A cancel request for a task that is
    /// over, and a second delivery, change nothing and succeed.
    ///
    /// # Errors
    /// If the change of status is not legal; the record stays as it was.
    pub fn apply(&mut self, change: TaskChange, now: Timestamp) -> Result<(), IllegalChange> {
        match change {
            TaskChange::Run => self.become_(TaskStatus::Running)?,
            TaskChange::WaitForConfirm => self.become_(TaskStatus::WaitingConfirm)?,
            TaskChange::Complete { result } => {
                self.become_(TaskStatus::Completed)?;
                self.result = Some(result);
            }
            TaskChange::Fail { error, partial } => {
                self.become_(TaskStatus::Failed)?;
                (self.error, self.result) = (Some(error), partial);
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
        if !status::can_become(from, to) {
            return Err(IllegalChange { id: self.id.clone(), from, to });
        }
        self.status = to;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
