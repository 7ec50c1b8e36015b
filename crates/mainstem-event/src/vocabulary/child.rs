//! A child as a line of a list.

use std::sync::Arc;

use mainstem_message::{AgentKey, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The state of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChildStatus {
    /// It has answered and accepts further messages.
    Idle,
    /// It is running.
    Running,
    /// It is running, and waits for children, tasks or an approval.
    Waiting,
    /// It is running, and its parent does not wait for it.
    Background,
    /// It was closed by its parent.
    Closed,
}

impl ChildStatus {
    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Background => "background",
            Self::Closed => "closed",
        }
    }
}

/// A child of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by the roster of the subagents, in another crate")]
pub struct ChildSummary {
    /// The handle of the child.
    pub agent_key: AgentKey,
    /// The id of the agent that it is an instance of.
    pub agent_id: Arc<str>,
    /// The name that its parent gave it.
    pub label: Option<String>,
    /// What to show beside its agent's name: see [`EventSource::title`](crate::EventSource::title).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// Its depth; the root's is 0.
    pub depth: u16,
    /// Its state.
    pub status: ChildStatus,
    /// The background task that it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The number of its turns.
    pub turns: u32,
    /// When its latest event happened.
    pub last_activity: Timestamp,
}
