//! A child of the roster: its record, and what it does now.

use std::sync::Arc;

use mainstem_event::{ChildStatus, ChildSummary, RunSettings, Timestamp};
use mainstem_message::TaskId;
use mainstem_react::{Cancellation, RunContext};
use serde_json::{Map, Value};

use crate::{
    options::SpawnOptions,
    spawn::{idle::Waits, inbox::Inbox, lineage::Lineage, roster::record::ChildRecord},
};

#[derive(Debug)]
pub(super) struct Child {
    pub(super) record: ChildRecord,
    pub(super) lineage: Arc<Lineage>,
    pub(super) carried: Carried,
    pub(super) status: ChildStatus,
    pub(super) task: Option<TaskId>,
    pub(super) inbox: Arc<Inbox>,
    /// Its present turn.
    pub(super) turn: Option<Turn>,
    /// Its position in lists.
    pub(super) order: u64,
}

/// A turn of a child.
#[derive(Debug)]
pub(super) enum Turn {
    /// It is about to start; a cancel until then is passed on.
    Starting(Cancellation),
    /// It runs in this context.
    Running { cx: RunContext, waits: Arc<Waits> },
}

/// What a child was given by the run that spawned it. It is in effect in all its turns, also in
/// those that start without a run.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Carried {
    /// The user for whom it works.
    pub user: Option<Arc<str>>,
    /// What the caller of the run attached to it.
    pub attributes: Map<String, Value>,
    /// How the run treats its children.
    pub options: SpawnOptions,
}

impl Carried {
    pub(crate) fn new(cx: &RunContext, options: SpawnOptions) -> Self {
        Self { user: cx.user().map(Arc::from), attributes: cx.attributes().clone(), options }
    }
}

impl From<&RunSettings> for Carried {
    fn from(settings: &RunSettings) -> Self {
        let (user, attributes) = (settings.user.clone(), settings.attributes.clone());
        Self { user, attributes, options: SpawnOptions::from(settings) }
    }
}

impl Turn {
    pub(super) fn cancellation(&self) -> &Cancellation {
        match self {
            Self::Starting(cancellation) => cancellation,
            Self::Running { cx, .. } => cx.cancellation(),
        }
    }
}

impl Child {
    pub(super) fn summary(&self) -> ChildSummary {
        let source = &self.record.source;
        ChildSummary {
            agent_key: source.agent_key.clone(),
            agent_id: source.agent_id.clone(),
            label: self.label().map(str::to_owned),
            title: self.record.source.title.clone(),
            depth: source.depth,
            status: self.status(),
            task_id: self.task.clone(),
            turns: source.turn,
            last_activity: self.last_activity(),
        }
    }

    /// Returns its label; a closed child has none.
    pub(super) fn label(&self) -> Option<&str> {
        self.record.label().filter(|_| self.status != ChildStatus::Closed)
    }

    /// Returns its label, or its agent's id.
    pub(super) fn name(&self) -> Arc<str> {
        self.label().map_or_else(|| self.record.source.agent_id.clone(), Arc::from)
    }

    /// `Waiting` takes precedence over `Background`; the task id is reported separately.
    fn status(&self) -> ChildStatus {
        match &self.turn {
            Some(Turn::Running { waits, .. }) if waits.is_waiting() => ChildStatus::Waiting,
            _ => self.status,
        }
    }

    fn last_activity(&self) -> Timestamp {
        match &self.turn {
            Some(Turn::Running { cx, .. }) => cx.last_event_at().unwrap_or(self.record.last_activity),
            _ => self.record.last_activity,
        }
    }
}
