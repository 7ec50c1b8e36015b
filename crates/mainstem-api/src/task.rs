//! Query parameters of the endpoints of background tasks.

use mainstem_event::TaskStatus;
use mainstem_message::SessionId;
use mainstem_task::TaskFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The query of [`Endpoint::ListTasks`](crate::Endpoint::ListTasks).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct TaskQuery {
    /// Only tasks of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Only tasks of this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
}

impl TaskQuery {
    /// Returns the filter for a task store.
    pub fn to_filter(&self) -> TaskFilter {
        let filter = self.session.clone().map_or_else(TaskFilter::all, TaskFilter::of_root);
        self.status.into_iter().fold(filter, TaskFilter::with_status)
    }
}

/// The query of [`Endpoint::WaitForTask`](crate::Endpoint::WaitForTask).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct WaitQuery {
    /// In seconds: 30 by default, 60 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

impl WaitQuery {
    /// The default, in seconds.
    pub const DEFAULT_SECS: u64 = 30;
}
