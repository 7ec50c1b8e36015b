//! The log's side of its record: how far it is, whether it has failed, and how much may wait for
//! it.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    task::{Wake, Waker},
};

use mainstem_message::Failure;

use super::SessionLog;
use crate::{
    AgentEvent, EventKind, Outcome, Record,
    sync::{AtomicU64, OnceLock},
};

/// A record, and what is known of it without asking it.
pub(crate) struct Recorded {
    pub(super) record: Arc<dyn Record>,
    /// How many events may wait for it before their producers do.
    lag: u64,
    committed: AtomicU64,
    failure: OnceLock<Arc<str>>,
}

/// What is to be done with an event that a record was given.
pub(super) enum Taken {
    /// Readers may see it at once.
    Shown,
    /// Not before it is committed.
    Held,
    /// The record has failed.
    Failed,
}

impl Recorded {
    pub(super) fn new(record: Arc<dyn Record>, lag: usize) -> Self {
        let committed = AtomicU64::new(record.committed());
        Self { record, lag: lag.max(1) as u64, committed, failure: OnceLock::new() }
    }

    /// Gives an event to the record.
    pub(super) fn take(&self, event: &AgentEvent) -> Taken {
        if self.failure.get().is_some() {
            return Taken::Failed;
        }
        self.record.append(event);
        let committed = self.record.committed();
        self.committed.fetch_max(committed, Ordering::Release);
        match committed >= event.seq {
            true => Taken::Shown,
            false if self.look().is_some() => Taken::Failed,
            false if event.kind.is_durable() => Taken::Held,
            false => Taken::Shown,
        }
    }

    /// Looks how far the record is.
    pub(super) fn look(&self) -> Option<&Arc<str>> {
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

/// A root's ending that the record does not have says so, rather than that all went well.
pub(super) fn amended(event: AgentEvent, why: &Arc<str>) -> AgentEvent {
    match &event.kind {
        EventKind::AgentEnd { outcome: Outcome::Error, .. } => event,
        EventKind::AgentEnd { usage, duration_ms, .. } if event.is_root() => {
            let error = Some(Failure::new("record", why.to_string()));
            let (outcome, usage, duration_ms) = (Outcome::Error, *usage, *duration_ms);
            let kind = EventKind::AgentEnd { outcome, error, usage, duration_ms };
            AgentEvent::new(event.seq, event.at, event.origin.clone(), kind)
        }
        _ => event,
    }
}

/// Tells a log that its record has moved, as long as there is a log.
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
