//! The producer of an event.

use std::sync::Arc;

use mainstem_message::{AgentKey, ReplyId, RunId, SessionId, TaskId, ToolCallId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The descendant that produced an event, stamped once, where the event is made.
///
/// An event of the agent whose stream you hold (the root) has no source. `path` is for people and
/// filters, and twins share it; group by `agent_key`, and by `turn` within it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventSource {
    /// This instance, `agent:<agent_id>:<uuid>`: the handle for `agent_send`.
    pub agent_key: AgentKey,
    /// What it is an instance of: the spec's file name.
    pub agent_id: Arc<str>,
    /// The name to show: the agent's, or its id if it has none. Absent in records of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<Arc<str>>,
    /// The label that the spawn gave this instance, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Arc<str>>,
    /// What to show beside its name: its label, else the first words of the task that it was
    /// spawned with. Absent if it has neither, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// The child's own session, `sub-<uuid>`.
    pub session_id: SessionId,
    /// The session of the agent that called it.
    pub parent_session_id: SessionId,
    /// 1 for a child of the root, 2 for its child.
    pub depth: u16,
    /// `<root session>/<agent_id>[/<agent_id>…]`.
    pub path: Arc<str>,
    /// The background task that this is part of, from the moment it became one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// 1, then 2, 3 … for each `agent_send`.
    pub turn: u32,
    /// The parent's tool call that caused this invocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<ToolCallId>,
    /// 0 is the root; each invocation has its own, in the order of their start. The session log
    /// gives it with the first event.
    pub stream_id: u64,
}

/// The most characters of a task in a title.
const MAX_TITLE: usize = 24;

impl EventSource {
    /// Returns the [`title`](Self::title) of an instance with this label and task: the words of the
    /// task that fit 24 characters, of which a single long word is cut.
    ///
    /// ```
    /// use mainstem_event::EventSource;
    ///
    /// let task = "Review the parser, then the tests";
    /// assert_eq!(EventSource::title_of(None, task).as_deref(), Some("Review the parser, then"));
    /// assert_eq!(EventSource::title_of(Some("left"), task).as_deref(), Some("left"));
    /// assert_eq!(EventSource::title_of(None, " "), None);
    /// ```
    pub fn title_of(label: Option<&str>, task: &str) -> Option<Arc<str>> {
        if let Some(label) = label {
            return Some(label.into());
        }
        let mut title = String::new();
        for word in task.split_whitespace() {
            let space = usize::from(!title.is_empty());
            if title.chars().count() + space + word.chars().count() > MAX_TITLE {
                if title.is_empty() {
                    title.extend(word.chars().take(MAX_TITLE));
                }
                break;
            }
            title.push_str(&" "[..space]);
            title.push_str(word);
        }
        (!title.is_empty()).then(|| title.into())
    }

    /// Returns `true` if this is `path` or below it; whole segments are compared.
    pub fn is_under(&self, path: &str) -> bool {
        self.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// What all events of one invocation share; events point at it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The root session.
    pub session_id: SessionId,
    /// The run during which it happened; absent between runs.
    pub run_id: Option<RunId>,
    /// The invocation's reply; absent on session-level events.
    pub reply_id: Option<ReplyId>,
    /// The descendant; absent for the root and on session-level events.
    pub source: Option<Arc<EventSource>>,
    /// The id of the root, on its own events, unless it is `main`.
    pub root_id: Option<Arc<str>>,
}

/// The id of a root without another one, as on session-level events.
pub(crate) const ROOT: &str = "main";

impl Origin {
    /// Returns the origin of session-level events.
    pub fn session(session_id: SessionId, run_id: Option<RunId>) -> Self {
        Self { session_id, run_id, reply_id: None, source: None, root_id: None }
    }

    /// The origin of a root's invocation.
    pub fn root(session_id: SessionId, run_id: RunId, reply_id: ReplyId, root_id: &Arc<str>) -> Self {
        let root_id = Some(root_id).filter(|id| ***id != *ROOT).cloned();
        Self { reply_id: Some(reply_id), root_id, ..Self::session(session_id, Some(run_id)) }
    }

    /// Returns the origin as part of a background task, during another run or none.
    pub(crate) fn in_task(&self, task: &TaskId, run: Option<&RunId>) -> Self {
        let mut origin = Self { run_id: run.cloned(), ..self.clone() };
        if let Some(source) = &mut origin.source {
            Arc::make_mut(source).task_id = Some(task.clone());
        }
        origin
    }
}

#[cfg(test)]
mod tests;
