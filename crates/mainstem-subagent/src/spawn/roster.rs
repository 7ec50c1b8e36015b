//! The children of a session: their identities, conversations and states.
//!
//! What events record of a child is a [`record`], which a running child and the fold of a session's
//! events ([`recorded`]) change in the same way.

mod child;
mod names;
mod open_calls;
mod record;
pub(crate) mod recorded;

use std::{
    collections::HashMap,
    iter::successors,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use dashmap::DashMap;
use mainstem_event::{ChildStatus, ChildSummary, EventSource, Timestamp};
use mainstem_message::{AgentKey, Message, SessionId, TaskId, ToolCallId};
use mainstem_react::{Cancellation, RunContext};
use mainstem_spec::{AgentSpec, OnLost};
use tokio::sync::Notify;

pub use self::child::Carried;
use self::child::{Child, Turn};
pub(crate) use self::{names::Identity, record::ChildRecord};
use crate::{
    error::SpawnError,
    spawn::{idle::Waits, inbox::Inbox, lineage::Lineage, roster::names::Names},
};

/// No guard of these maps is held across an await: every method takes what it needs and lets go.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    /// In boxes, because a table is half empty.
    children: DashMap<AgentKey, Box<Child>>,
    names: Names,
    /// How many children were added.
    entered: AtomicU64,
    /// The root's.
    inbox: Arc<Inbox>,
    /// Children whose turns were cut off and that go on once their parents do, by the session of
    /// the parent.
    lost: DashMap<SessionId, Vec<AgentKey>>,
    /// Notified when a child has ended its turn.
    ends: Notify,
    /// The children of an earlier process whose agents can't be built, each with its agent's id.
    not_rebuilt: DashMap<AgentKey, EventSource>,
}

/// A child whose turn is about to start: who it is, and what was said before.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) lineage: Arc<Lineage>,
    pub(crate) source: EventSource,
    pub(crate) history: Vec<Arc<Message>>,
}

impl Roster {
    /// Takes a label for a child. Labels differ by more than case.
    ///
    /// # Errors
    /// Another child has it.
    pub(crate) fn claim(&self, label: &str, key: &AgentKey) -> Result<(), SpawnError> {
        self.names.claim(label, key)
    }

    /// Returns the open child of this identity.
    pub(crate) fn same(&self, identity: &Identity) -> Option<AgentKey> {
        self.names.same(identity)
    }

    /// Gives a child an identity.
    ///
    /// # Errors
    /// Another child got it in the meantime.
    pub(crate) fn identify(&self, identity: Identity, key: &AgentKey) -> Result<(), SpawnError> {
        self.names.identify(identity, key)
    }

    /// Adds a child that starts its first turn.
    pub(crate) fn enter(&self, lineage: Arc<Lineage>, source: EventSource, carried: Carried, now: Timestamp) {
        let turn = Turn::Starting(Cancellation::new());
        self.add(ChildRecord::new(source, now), lineage, carried, ChildStatus::Running, Some(turn));
    }

    /// Adds an idle child of an earlier process.
    pub(crate) fn restore(&self, record: ChildRecord, lineage: Arc<Lineage>, carried: Carried) {
        let source = &record.source;
        if let Some(label) = record.label() {
            self.names.set_label(label, &source.agent_key);
        }
        if lineage.entry.spec.persist_session {
            let (parent, user) = (&source.parent_session_id, carried.user.as_deref());
            let identity = Identity::new(parent, &source.agent_id, record.label(), user);
            self.names.set_identity(identity, &source.agent_key);
        }
        if record.is_lost && lineage.entry.spec.on_lost == OnLost::Resume {
            self.lost.entry(source.parent_session_id.clone()).or_default().push(source.agent_key.clone());
        }
        self.add(record, lineage, carried, ChildStatus::Idle, None);
    }

    /// Takes the next child of an agent whose turn was cut off and that goes on, in the order of
    /// their start, with how many of its latest turns were cut off. One that has begun another turn
    /// or was closed is left out.
    pub(crate) fn take_lost(&self, parent: &SessionId) -> Option<(AgentKey, u32)> {
        loop {
            let key = {
                let mut lost = self.lost.get_mut(parent)?;
                if lost.is_empty() {
                    return None;
                }
                lost.remove(0)
            };
            let child = self.children.get(&key);
            let child = child.filter(|it| it.record.is_lost && it.status == ChildStatus::Idle);
            if let Some(child) = child {
                return Some((key, child.record.losses));
            }
        }
    }

    /// Leaves the children of an agent whose turns were cut off to its model.
    pub(crate) fn forget_lost(&self, parent: &SessionId) {
        self.lost.remove(parent);
    }

    fn add(
        &self,
        record: ChildRecord,
        lineage: Arc<Lineage>,
        carried: Carried,
        status: ChildStatus,
        turn: Option<Turn>,
    ) {
        let (key, order) = (record.source.agent_key.clone(), self.entered.fetch_add(1, Ordering::Relaxed));
        let (task, inbox) = (None, Arc::default());
        let child = Child { record, lineage, carried, status, task, inbox, turn, order };
        self.children.insert(key, Box::new(child));
    }

    /// Remembers that the agent of an earlier process's child can't be built.
    pub(crate) fn set_not_rebuilt(&self, source: &EventSource) {
        self.not_rebuilt.insert(source.agent_key.clone(), source.clone());
    }

    /// Starts a further turn of an idle child.
    ///
    /// # Errors
    /// It is unknown, closed or running.
    pub(crate) fn resume(
        &self,
        key: &AgentKey,
        now: Timestamp,
        call: Option<ToolCallId>,
    ) -> Result<Seat, SpawnError> {
        self.start_turn(key, |child| {
            let before = child.record.source.clone();
            let source = EventSource { turn: before.turn + 1, parent_tool_call_id: call, ..before };
            child.record.start(source, now);
        })
    }

    /// Continues the latest turn of a restored child, which another process has begun.
    ///
    /// # Errors
    /// It is unknown, closed or running.
    pub(crate) fn continue_turn(&self, key: &AgentKey) -> Result<Seat, SpawnError> {
        self.start_turn(key, |_| ())
    }

    fn start_turn(&self, key: &AgentKey, change: impl FnOnce(&mut Child)) -> Result<Seat, SpawnError> {
        let mut child = self.children.get_mut(key).ok_or_else(|| self.unknown(key.as_str(), None))?;
        match child.status {
            ChildStatus::Idle => {}
            ChildStatus::Closed => return Err(SpawnError::Closed { key: key.to_string() }),
            _ => return Err(SpawnError::Busy { key: key.to_string() }),
        }
        change(&mut child);
        child.status = ChildStatus::Running;
        child.turn = Some(Turn::Starting(Cancellation::new()));
        let ChildRecord { source, history, .. } = child.record.clone();
        Ok(Seat { lineage: child.lineage.clone(), source, history })
    }

    /// Returns `true` if another process could continue the turns of a child.
    pub(crate) fn can_continue(&self, key: &AgentKey) -> bool {
        let continues = |child: &Child| child.lineage.entry.agent.runner().continues().is_some();
        self.children.get(key).is_some_and(|child| continues(&child))
    }

    /// Sets the context in which a child's present turn runs.
    pub(crate) fn set_context(&self, key: &AgentKey, cx: &RunContext, waits: &Arc<Waits>) {
        if let Some(mut child) = self.children.get_mut(key) {
            let before = child.turn.replace(Turn::Running { cx: cx.clone(), waits: waits.clone() });
            // It may have been cancelled before it started.
            if let Some(reason) = before.and_then(|before| before.cancellation().reason()) {
                cx.cancellation().cancel(reason);
            }
        }
    }

    /// Returns what the run that spawned a child gave it.
    pub(crate) fn carried(&self, key: &AgentKey) -> Option<Carried> {
        self.children.get(key).map(|child| child.carried.clone())
    }

    /// Removes a child whose first turn never started.
    pub(crate) fn forget(&self, key: &AgentKey) {
        self.children.remove(key);
        self.names.forget(key);
    }

    /// Returns `true` if a turn of the child is running or about to.
    pub(crate) fn is_running(&self, key: &AgentKey) -> bool {
        self.children.get(key).is_some_and(|child| child.turn.is_some())
    }

    /// Checks that a child's running turn reads messages.
    pub(crate) fn check_reads_messages(&self, key: &AgentKey) -> Result<(), SpawnError> {
        let reads = |child: &Child| child.lineage.entry.agent.runner().reads_messages();
        let reads = self.children.get(key).is_none_or(|child| reads(&child));
        if reads { Ok(()) } else { Err(SpawnError::OnlyBetweenTurns { key: key.to_string() }) }
    }

    /// Checks that a child is not closed.
    pub(crate) fn check_open(&self, key: &AgentKey) -> Result<(), SpawnError> {
        let is_closed = self.children.get(key).is_some_and(|child| child.status == ChildStatus::Closed);
        if is_closed { Err(SpawnError::Closed { key: key.to_string() }) } else { Ok(()) }
    }

    /// Returns the messages for an agent's next model call; the root has no key.
    pub(crate) fn inbox(&self, key: Option<&AgentKey>) -> Arc<Inbox> {
        match key {
            None => self.inbox.clone(),
            // An agent that is a tool of another one is not in the roster.
            Some(key) => self.children.get(key).map(|child| child.inbox.clone()).unwrap_or_default(),
        }
    }

    /// Waits until no turn of the child is running.
    pub(crate) async fn idle(&self, key: &AgentKey) {
        loop {
            let end = self.ends.notified();
            if !self.is_running(key) {
                return;
            }
            end.await;
        }
    }

    /// Returns the cancellations of a child and of all below it that are running.
    pub(crate) fn cancellations_below(&self, key: &AgentKey) -> Vec<Cancellation> {
        let own = |key: &AgentKey| {
            let child = self.children.get(key)?;
            child.turn.as_ref().map(|turn| turn.cancellation().clone())
        };
        let session = self.children.get(key).map(|child| child.record.source.session_id.clone());
        let Some(session) = session else { return Vec::new() };
        let below = self.list(Some(&session)).into_iter().filter_map(|child| own(&child.agent_key));
        own(key).into_iter().chain(below).collect()
    }

    /// Closes an idle child and forgets its conversation; returns `false` if it was closed already.
    pub(crate) fn close(&self, key: &AgentKey) -> bool {
        let mut was_open = false;
        if let Some(mut child) = self.children.get_mut(key) {
            was_open = child.status != ChildStatus::Closed;
            child.status = ChildStatus::Closed;
            child.record.replace(&[]);
        }
        self.names.forget(key);
        was_open
    }

    /// Moves a running child to the background; one that has ended stays idle.
    pub(crate) fn becomes_task(&self, key: &AgentKey, task: &TaskId) {
        if let Some(mut child) = self.children.get_mut(key)
            && child.status == ChildStatus::Running
        {
            (child.status, child.task) = (ChildStatus::Background, Some(task.clone()));
        }
    }

    /// Forgets what was said before a child's present turn: compaction has replaced it.
    pub(crate) fn forget_history(&self, key: &AgentKey) {
        if let Some(mut child) = self.children.get_mut(key) {
            child.record.replace(&[]);
        }
    }

    /// Ends a child's turn, with what was said in it.
    pub(crate) fn leave(&self, key: &AgentKey, said: &[Arc<Message>], now: Timestamp) {
        if let Some(mut child) = self.children.get_mut(key) {
            child.record.end(said, now);
            (child.status, child.task, child.turn) = (ChildStatus::Idle, None, None);
        }
        self.ends.notify_waiters();
    }

    /// Finds a child by its key or label, among those below `parent`.
    ///
    /// # Errors
    /// Neither or both are given; the child does not exist; its agent can't be built.
    pub(crate) fn find(
        &self,
        key: Option<&str>,
        label: Option<&str>,
        parent: Option<&SessionId>,
    ) -> Result<AgentKey, SpawnError> {
        let (name, key) = match (key, label) {
            (Some(key), None) => (key, key.parse().ok()),
            (None, Some(label)) => (label, self.names.labelled(label).or_else(|| self.not_rebuilt_as(label))),
            _ => return Err(SpawnError::NotOne),
        };
        if let Some(lost) = key.as_ref().and_then(|key| self.not_rebuilt.get(key)) {
            return Err(SpawnError::NotRebuilt { key: name.to_owned(), id: lost.agent_id.to_string() });
        }
        let known = self.list(parent);
        key.filter(|key| known.iter().any(|child| child.agent_key == *key))
            .ok_or_else(|| self.unknown(name, parent))
    }

    /// Returns the child of an earlier process that had this label, and whose agent can't be built.
    fn not_rebuilt_as(&self, label: &str) -> Option<AgentKey> {
        let had_it = |lost: &EventSource| {
            lost.label.as_deref().is_some_and(|had| had.to_lowercase() == label.to_lowercase())
        };
        self.not_rebuilt.iter().find(|lost| had_it(lost)).map(|lost| lost.agent_key.clone())
    }

    /// Returns the children below `parent`, or all, in the order of their start.
    pub(crate) fn list(&self, parent: Option<&SessionId>) -> Vec<ChildSummary> {
        let line = |source: &EventSource| (source.session_id.clone(), source.parent_session_id.clone());
        let parents: HashMap<_, _> = self.children.iter().map(|child| line(&child.record.source)).collect();
        let is_below = |session: &SessionId| {
            parent.is_none_or(|parent| {
                successors(parents.get(session), |above| parents.get(*above)).any(|above| above == parent)
            })
        };
        let below = self.children.iter().filter(|child| is_below(&child.record.source.session_id));
        let mut below: Vec<_> = below.map(|child| (child.order, child.summary())).collect();
        below.sort_by_key(|(order, _)| *order);
        below.into_iter().map(|(_, child)| child).collect()
    }

    /// Returns the child's label, or its agent's id.
    pub(crate) fn name(&self, key: &AgentKey) -> Arc<str> {
        self.children.get(key).map_or_else(|| key.as_str().into(), |child| child.name())
    }

    /// Returns the child that has this session.
    pub(crate) fn source(&self, session: &SessionId) -> Option<EventSource> {
        let mut sources = self.children.iter().map(|child| child.record.source.clone());
        sources.find(|source| source.session_id == *session)
    }

    /// Returns what a child was spawned as.
    pub(crate) fn spec(&self, key: &AgentKey) -> Option<Arc<AgentSpec>> {
        self.children.get(key).map(|child| child.lineage.entry.spec.clone())
    }

    fn unknown(&self, name: &str, parent: Option<&SessionId>) -> SpawnError {
        let names = |child: ChildSummary| child.label.unwrap_or_else(|| child.agent_key.to_string());
        let open = self.list(parent).into_iter().filter(|child| child.status != ChildStatus::Closed);
        let known = open.map(names).collect();
        SpawnError::UnknownChild { name: name.to_owned(), known }
    }
}

#[cfg(test)]
mod tests;
