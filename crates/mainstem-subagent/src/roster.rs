//! The children of a session: who they are, what they said, whether they are at work.

use std::sync::Arc;

use dashmap::{DashMap, mapref::entry::Entry};
use mainstem_event::{EventSource, Timestamp};
use mainstem_message::{AgentKey, Message, SessionId, TaskId};
use mainstem_react::Agent;
use schemars::JsonSchema;
use serde::Serialize;

use crate::SpawnError;

/// No guard of these maps is held across an await: every method takes what it needs and lets go.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    children: DashMap<AgentKey, Child>,
    labels: DashMap<String, AgentKey>,
}

#[derive(Debug)]
struct Child {
    agent: Agent,
    /// Of its latest turn.
    source: EventSource,
    label: Option<String>,
    status: ChildStatus,
    task: Option<TaskId>,
    history: Vec<Arc<Message>>,
    last_activity: Timestamp,
    /// The stream of its first turn: its place in lists.
    order: u64,
}

/// What a child is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChildStatus {
    /// It has answered and can be sent more.
    Idle,
    /// It is at work.
    Running,
    /// It is at work, and its parent does not wait for it.
    Background,
}

/// One line of a list of children.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ChildSummary {
    /// The handle.
    pub agent_key: AgentKey,
    /// What it is an instance of.
    pub agent_id: Arc<str>,
    /// The name that its parent gave it.
    pub label: Option<String>,
    /// Its depth.
    pub depth: u16,
    /// What it is doing.
    pub status: ChildStatus,
    /// The background task that it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// How often it was asked.
    pub turns: u32,
    /// When its last turn began or ended.
    pub last_activity: Timestamp,
    #[serde(skip)]
    order: u64,
}

/// A child that is about to work: who it is, and what was said before.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) agent: Agent,
    pub(crate) source: EventSource,
    pub(crate) history: Vec<Arc<Message>>,
    pub(crate) label: Option<String>,
}

impl Roster {
    /// Takes a label for a child, if it is free. Labels differ by more than case.
    pub(crate) fn claim(&self, label: &str, key: &AgentKey) -> Result<(), SpawnError> {
        match self.labels.entry(label.to_lowercase()) {
            Entry::Vacant(free) => {
                free.insert(key.clone());
                Ok(())
            }
            Entry::Occupied(taken) => {
                Err(SpawnError::LabelTaken { label: label.to_owned(), key: taken.get().to_string() })
            }
        }
    }

    /// Adds a child that starts its first turn.
    pub(crate) fn enter(&self, agent: Agent, source: EventSource, label: Option<String>, now: Timestamp) {
        let (key, status) = (source.agent_key.clone(), ChildStatus::Running);
        let order = source.stream_id;
        let child = Child {
            agent,
            source,
            label,
            status,
            task: None,
            history: Vec::new(),
            last_activity: now,
            order,
        };
        self.children.insert(key, child);
    }

    /// Starts a further turn of an idle child.
    pub(crate) fn resume(
        &self,
        key: &AgentKey,
        now: Timestamp,
        next: impl FnOnce(&mut EventSource),
    ) -> Result<Seat, SpawnError> {
        let mut child = self.children.get_mut(key).ok_or_else(|| self.unknown(key.as_str(), None))?;
        if child.status != ChildStatus::Idle {
            return Err(SpawnError::Busy { key: key.to_string() });
        }
        (child.status, child.last_activity) = (ChildStatus::Running, now);
        child.source.turn += 1;
        next(&mut child.source);
        let Child { agent, source, history, label, .. } = &*child;
        let (agent, source) = (agent.clone(), source.clone());
        Ok(Seat { agent, source, history: history.clone(), label: label.clone() })
    }

    /// A child at work goes on in the background.
    pub(crate) fn becomes_task(&self, key: &AgentKey, task: &TaskId) {
        // It may have ended already.
        if let Some(mut child) = self.children.get_mut(key)
            && child.status == ChildStatus::Running
        {
            (child.status, child.task) = (ChildStatus::Background, Some(task.clone()));
        }
    }

    /// Ends a child's turn and keeps what was said in it.
    pub(crate) fn leave(&self, key: &AgentKey, said: Vec<Arc<Message>>, now: Timestamp) {
        if let Some(mut child) = self.children.get_mut(key) {
            child.history.extend(said);
            (child.status, child.task, child.last_activity) = (ChildStatus::Idle, None, now);
        }
    }

    /// The child of that key or label, among those below `parent`.
    pub(crate) fn find(
        &self,
        key: Option<&str>,
        label: Option<&str>,
        parent: Option<&SessionId>,
    ) -> Result<AgentKey, SpawnError> {
        let (name, key) = match (key, label) {
            (Some(key), None) => (key, Some(AgentKey::new(key))),
            (None, Some(label)) => (label, self.labels.get(&label.to_lowercase()).map(|key| key.clone())),
            _ => return Err(SpawnError::NotOne),
        };
        let known = self.list(parent);
        key.filter(|key| known.iter().any(|child| child.agent_key == *key))
            .ok_or_else(|| self.unknown(name, parent))
    }

    /// The children below `parent`, or all, in the order of their start.
    pub(crate) fn list(&self, parent: Option<&SessionId>) -> Vec<ChildSummary> {
        let parents: std::collections::HashMap<_, _> = self
            .children
            .iter()
            .map(|child| (child.source.session_id.clone(), child.source.parent_session_id.clone()))
            .collect();
        let is_below = |session: &SessionId| {
            parent.is_none_or(|parent| {
                std::iter::successors(parents.get(session), |above| parents.get(*above))
                    .any(|above| above == parent)
            })
        };
        let mut all: Vec<_> = self
            .children
            .iter()
            .filter(|child| is_below(&child.source.session_id))
            .map(|child| child.summary())
            .collect();
        all.sort_by_key(|child| child.order);
        all
    }

    fn unknown(&self, name: &str, parent: Option<&SessionId>) -> SpawnError {
        let names = |child: ChildSummary| child.label.unwrap_or_else(|| child.agent_key.to_string());
        SpawnError::UnknownChild {
            name: name.to_owned(),
            known: self.list(parent).into_iter().map(names).collect(),
        }
    }
}

impl Child {
    fn summary(&self) -> ChildSummary {
        ChildSummary {
            agent_key: self.source.agent_key.clone(),
            agent_id: self.source.agent_id.clone(),
            label: self.label.clone(),
            depth: self.source.depth,
            status: self.status,
            task_id: self.task.clone(),
            turns: self.source.turn,
            last_activity: self.last_activity,
            order: self.order,
        }
    }
}

#[cfg(test)]
mod tests;
