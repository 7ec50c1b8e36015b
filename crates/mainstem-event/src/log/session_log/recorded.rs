//! The log's side of its record: its progress, its failure, and the bound of its lag.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    task::{Wake, Waker},
};

use mainstem_message::Failure;

use super::SessionLog;
use crate::{
    AgentEvent, EventKind, Outcome, Record,
    log::sync::{AtomicU64, OnceLock},
};

/// A record, with a cache of its progress.
pub(crate) struct Recorded {
    pub(super) record: Arc<dyn Record>,
    /// How many uncommitted events there may be before producers wait.
    lag: u64,
    committed: AtomicU64,
    failure: OnceLock<Arc<str>>,
}

/// What to do with an event after it was appended to the record.
pub(super) enum Taken {
    /// Show it to readers at once.
    Shown,
    /// Hide it until it is committed.
    Held,
    /// The record has failed.
    Failed,
}

impl Recorded {
    pub(super) fn new(record: Arc<dyn Record>, lag: usize) -> Self {
        let committed = AtomicU64::new(record.committed());
        Self { record, lag: lag.max(1) as u64, committed, failure: OnceLock::new() }
    }

    /// Appends an event to the record.
    pub(super) fn take(&self, event: &AgentEvent) -> Taken {
        if self.failure.get().is_some() {
            return Taken::Failed;
        }
        self.record.append(event);
        let committed = self.record.committed();
        self.committed.fetch_max(committed, Ordering::Release);
        match committed >= event.seq {
            true => Taken::Shown,
            false if self.poll().is_some() => Taken::Failed,
            false if event.kind.is_durable() => Taken::Held,
            false => Taken::Shown,
        }
    }

    /// Reads the progress of the record. Returns why it has failed, if it has.
    pub(super) fn poll(&self) -> Option<&Arc<str>> {
        self.committed.fetch_max(self.record.committed(), Ordering::Release);
        if let Some(why) = self.record.failure() {
            return Some(self.failure.get_or_init(|| why));
        }
        None
    }

    pub(super) fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    pub(super) fn failure(&self) -> Option<&Arc<str>> {
        self.failure.get()
    }

    /// Returns `true` if the record keeps up; a failed record does not hold producers back.
    pub(super) fn has_room(&self, head: u64) -> bool {
        head.saturating_sub(self.committed()) < self.lag || self.failure().is_some()
    }
}

/// Changes the ending of a root that the record lacks into a failure.
pub(super) fn amended(event: AgentEvent, why: &Arc<str>) -> AgentEvent {
    match &event.kind {
        EventKind::AgentEnd { outcome: Outcome::Error, .. } => event,
        EventKind::AgentEnd { usage, duration_ms, .. } if event.is_root() => {
            let error = Some(Failure::new("record", why.to_string()));
            let (outcome, usage, duration_ms) = (Outcome::Error, usage.clone(), *duration_ms);
            let kind = EventKind::AgentEnd { outcome, error, usage, duration_ms };
            AgentEvent::new(event.seq, event.at, event.origin.clone(), kind)
        }
        _ => event,
    }
}

/// Notifies a log of its record's progress; holds the log weakly.
struct Progress(Weak<SessionLog>);

impl Wake for Progress {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(log) = self.0.upgrade() {
            log.progressed();
        }
    }
}

pub(super) fn waker(log: &Arc<SessionLog>) -> Waker {
    Arc::new(Progress(Arc::downgrade(log))).into()
}
