//! The children of a session: their identities, their conversations and their states.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use dashmap::{DashMap, mapref::entry::Entry};
use mainstem_event::{ChildStatus, ChildSummary, EventSource, RunSettings, Timestamp};
use mainstem_message::{AgentKey, Message, SessionId, TaskId, ToolCallId};
use mainstem_react::{Cancellation, RunContext};
use mainstem_spec::AgentSpec;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::{
    error::SpawnError,
    options::SpawnOptions,
    spawn::{idle::Waits, inbox::Inbox, lineage::Lineage},
};

/// No guard of these maps is held across an await: every method takes what it needs and lets go.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    /// In boxes, for a table is half empty.
    children: DashMap<AgentKey, Box<Child>>,
    labels: DashMap<String, AgentKey>,
    identities: DashMap<Identity, AgentKey>,
    /// How many children there were.
    entered: AtomicU64,
    /// The root's.
    inbox: Arc<Inbox>,
    /// Whenever a child has ended its turn.
    ends: Notify,
    /// Children of an earlier process that could not be taken back, and what they were.
    missed: DashMap<AgentKey, Arc<str>>,
}

#[derive(Debug)]
struct Child {
    lineage: Arc<Lineage>,
    /// Of its latest turn.
    source: EventSource,
    label: Option<String>,
    status: ChildStatus,
    task: Option<TaskId>,
    inbox: Arc<Inbox>,
    /// Of its present turn.
    work: Option<Work>,
    carried: Carried,
    history: Vec<Arc<Message>>,
    last_activity: Timestamp,
    /// Its place in lists.
    order: u64,
}

/// A turn of a child.
#[derive(Debug)]
enum Work {
    /// It is about to begin; a cancel until then is passed on.
    Begins(Cancellation),
    /// It runs in this context.
    GoesOn(RunContext),
}

impl Work {
    fn cancellation(&self) -> &Cancellation {
        match self {
            Self::Begins(cancellation) => cancellation,
            Self::GoesOn(cx) => cx.cancellation(),
        }
    }
}

/// What a child was given by the run that spawned it, and keeps for turns that no run begins.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Carried {
    /// On whose behalf it works.
    pub user: Option<Arc<str>>,
    /// What the caller of the run attached to it.
    pub attributes: Map<String, Value>,
    /// How the run treats its children.
    pub options: SpawnOptions,
}

impl Carried {
    pub(crate) fn of(cx: &RunContext) -> Self {
        let (user, attributes) = (cx.user().map(Arc::from), cx.attributes().clone());
        Self { user, attributes, options: SpawnOptions::of(cx) }
    }
}

impl From<&RunSettings> for Carried {
    fn from(settings: &RunSettings) -> Self {
        let (user, attributes) = (settings.user.clone(), settings.attributes.clone());
        Self { user, attributes, options: SpawnOptions::from(settings) }
    }
}

/// By what `agent_spawn` finds a child again whose spec says `persist_session`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) parent: SessionId,
    pub(crate) agent_id: String,
    /// In lower case, as labels are compared.
    pub(crate) label: Option<String>,
    pub(crate) user: Option<String>,
}

/// A child that is about to work: who it is, and what was said before.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) lineage: Arc<Lineage>,
    pub(crate) source: EventSource,
    pub(crate) history: Vec<Arc<Message>>,
    pub(crate) label: Option<String>,
}

/// A child of an earlier process.
#[derive(Debug)]
pub(crate) struct Return {
    pub(crate) lineage: Arc<Lineage>,
    /// Of its latest turn.
    pub(crate) source: EventSource,
    pub(crate) label: Option<String>,
    pub(crate) carried: Carried,
    pub(crate) history: Vec<Arc<Message>>,
    pub(crate) last_activity: Timestamp,
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

    /// The child of this identity, closed ones aside.
    pub(crate) fn same(&self, identity: &Identity) -> Option<AgentKey> {
        self.identities.get(identity).map(|key| key.clone())
    }

    /// Gives a child an identity, unless another has just got it.
    pub(crate) fn identify(&self, identity: Identity, key: &AgentKey) -> Result<(), SpawnError> {
        match self.identities.entry(identity) {
            Entry::Vacant(free) => {
                free.insert(key.clone());
                Ok(())
            }
            Entry::Occupied(taken) => Err(SpawnError::AtWork { key: taken.get().to_string() }),
        }
    }

    /// Adds a child that starts its first turn.
    pub(crate) fn enter(
        &self,
        lineage: Arc<Lineage>,
        source: EventSource,
        label: Option<String>,
        carried: Carried,
        now: Timestamp,
    ) {
        let (key, status) = (source.agent_key.clone(), ChildStatus::Running);
        let order = self.entered.fetch_add(1, Ordering::Relaxed);
        let child = Child {
            lineage,
            source,
            label,
            status,
            task: None,
            inbox: Arc::default(),
            work: Some(Work::Begins(Cancellation::new())),
            carried,
            history: Vec::new(),
            last_activity: now,
            order,
        };
        self.children.insert(key, Box::new(child));
    }

    /// Adds a child of an earlier process, which is idle.
    pub(crate) fn take_back(&self, child: Return) {
        let Return { lineage, source, label, carried, history, last_activity } = child;
        let key = source.agent_key.clone();
        if let Some(label) = &label {
            self.labels.insert(label.to_lowercase(), key.clone());
        }
        if lineage.entry.spec.persist_session {
            let identity = Identity {
                parent: source.parent_session_id.clone(),
                agent_id: source.agent_id.to_string(),
                label: label.as_deref().map(str::to_lowercase),
                user: carried.user.as_deref().map(str::to_owned),
            };
            self.identities.insert(identity, key.clone());
        }
        let child = Child {
            lineage,
            source: EventSource { task_id: None, ..source },
            label,
            status: ChildStatus::Idle,
            task: None,
            inbox: Arc::default(),
            work: None,
            carried,
            history,
            last_activity,
            order: self.entered.fetch_add(1, Ordering::Relaxed),
        };
        self.children.insert(key, Box::new(child));
    }

    /// A child of an earlier process can't be taken back.
    pub(crate) fn miss(&self, source: &EventSource) {
        self.missed.insert(source.agent_key.clone(), source.agent_id.clone());
    }

    /// Starts a further turn of an idle child.
    pub(crate) fn resume(
        &self,
        key: &AgentKey,
        now: Timestamp,
        call: Option<ToolCallId>,
    ) -> Result<Seat, SpawnError> {
        let mut child = self.children.get_mut(key).ok_or_else(|| self.unknown(key.as_str(), None))?;
        match child.status {
            ChildStatus::Idle => {}
            ChildStatus::Closed => return Err(SpawnError::Closed { key: key.to_string() }),
            _ => return Err(SpawnError::Busy { key: key.to_string() }),
        }
        (child.status, child.last_activity) = (ChildStatus::Running, now);
        child.work = Some(Work::Begins(Cancellation::new()));
        child.source.turn += 1;
        child.source.parent_tool_call_id = call;
        let Child { lineage, source, history, label, .. } = &**child;
        let (lineage, source) = (lineage.clone(), source.clone());
        Ok(Seat { lineage, source, history: history.clone(), label: label.clone() })
    }

    /// Sets the context in which a child's current turn runs.
    pub(crate) fn works_in(&self, key: &AgentKey, cx: &RunContext) {
        if let Some(mut child) = self.children.get_mut(key) {
            let before = child.work.replace(Work::GoesOn(cx.clone()));
            // It may have been cancelled before it began.
            if let Some(reason) = before.and_then(|before| before.cancellation().reason()) {
                cx.cancellation().cancel(reason);
            }
        }
    }

    /// On whose behalf a child works, and how.
    pub(crate) fn carried(&self, key: &AgentKey) -> Option<Carried> {
        self.children.get(key).map(|child| child.carried.clone())
    }

    /// Takes a child back that never began.
    pub(crate) fn forget(&self, key: &AgentKey) {
        self.children.remove(key);
        self.forget_names(key);
    }

    fn forget_names(&self, key: &AgentKey) {
        self.labels.retain(|_, labelled| labelled != key);
        self.identities.retain(|_, same| same != key);
    }

    /// Whether a child can be told something in the midst of its work.
    pub(crate) fn is_at_work(&self, key: &AgentKey) -> bool {
        self.children.get(key).is_some_and(|child| child.work.is_some())
    }

    /// Whether a child can be sent to at all.
    pub(crate) fn is_open(&self, key: &AgentKey) -> Result<(), SpawnError> {
        let is_closed = self.children.get(key).is_some_and(|child| child.status == ChildStatus::Closed);
        if is_closed { Err(SpawnError::Closed { key: key.to_string() }) } else { Ok(()) }
    }

    /// What waits for an agent's next model call; the root has no key.
    pub(crate) fn inbox(&self, key: Option<&AgentKey>) -> Arc<Inbox> {
        let own = key.and_then(|key| self.children.get(key).map(|child| child.inbox.clone()));
        own.unwrap_or_else(|| self.inbox.clone())
    }

    /// Resolves when a child has nothing to do.
    pub(crate) async fn idle(&self, key: &AgentKey) {
        loop {
            let end = self.ends.notified();
            if !self.is_at_work(key) {
                return;
            }
            end.await;
        }
    }

    /// What stops a child and all below it.
    pub(crate) fn cancellations_below(&self, key: &AgentKey) -> Vec<Cancellation> {
        let own = |key: &AgentKey| {
            let child = self.children.get(key)?;
            child.work.as_ref().map(|work| work.cancellation().clone())
        };
        let Some(session) = self.children.get(key).map(|child| child.source.session_id.clone()) else {
            return Vec::new();
        };
        let below = self.list(Some(&session)).into_iter().filter_map(|child| own(&child.agent_key));
        own(key).into_iter().chain(below).collect()
    }

    /// Forgets a child that is idle; returns `false` if it was closed already.
    pub(crate) fn close(&self, key: &AgentKey) -> bool {
        let mut was_open = false;
        if let Some(mut child) = self.children.get_mut(key) {
            was_open = child.status != ChildStatus::Closed;
            child.status = ChildStatus::Closed;
            (child.history, child.label) = (Vec::new(), None);
        }
        self.forget_names(key);
        was_open
    }

    /// Moves a running child to the background.
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
            child.work = None;
        }
        self.ends.notify_waiters();
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
        if let Some(missed) = key.as_ref().and_then(|key| self.missed.get(key)) {
            return Err(SpawnError::NotRebuilt { key: name.to_owned(), id: missed.to_string() });
        }
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
            .map(|child| (child.order, child.summary()))
            .collect();
        all.sort_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, child)| child).collect()
    }

    /// Returns the child's label, or its agent's id.
    pub(crate) fn name(&self, key: &AgentKey) -> Arc<str> {
        let name =
            |child: &Child| child.label.as_deref().map_or_else(|| child.source.agent_id.clone(), Arc::from);
        self.children.get(key).map_or_else(|| key.as_str().into(), |child| name(&child))
    }

    /// Who has this session.
    pub(crate) fn source(&self, session: &SessionId) -> Option<EventSource> {
        let mut sources = self.children.iter().map(|child| child.source.clone());
        sources.find(|source| source.session_id == *session)
    }

    /// What a child was spawned as.
    pub(crate) fn spec(&self, key: &AgentKey) -> Option<Arc<AgentSpec>> {
        self.children.get(key).map(|child| child.lineage.entry.spec.clone())
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
            status: self.status(),
            task_id: self.task.clone(),
            turns: self.source.turn,
            last_activity: self.last_activity(),
        }
    }

    /// `Waiting` takes precedence over `Background`; the task id is reported separately.
    fn status(&self) -> ChildStatus {
        match &self.work {
            Some(Work::GoesOn(cx)) if Waits::is_waiting(cx) => ChildStatus::Waiting,
            _ => self.status,
        }
    }

    fn last_activity(&self) -> Timestamp {
        match &self.work {
            Some(Work::GoesOn(cx)) => cx.last_event_at().unwrap_or(self.last_activity),
            _ => self.last_activity,
        }
    }
}

#[cfg(test)]
mod tests;
