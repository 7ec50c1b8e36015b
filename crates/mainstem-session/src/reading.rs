//! The progress of a run's reader, for diagnostics.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use mainstem_event::{AgentEvent, Diagnostics, EventKind, SessionLog};
use mainstem_message::RunId;

/// What a run knows of what it has handed out: two numbers, unless it shall keep count.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The first and the last event; 0 before.
    first: AtomicU64,
    last: AtomicU64,
    kept: Option<Mutex<Diagnostics>>,
}

impl Reading {
    pub(crate) fn new(keeps_count: bool) -> Self {
        Self { kept: keeps_count.then(Mutex::default), ..Self::default() }
    }

    /// Only the run calls this, so there is one writer.
    pub(crate) fn handed(&self, event: &AgentEvent) {
        if self.last.load(Ordering::Relaxed) == 0 {
            self.first.store(event.seq, Ordering::Relaxed);
        }
        if let Some(kept) = &self.kept {
            kept.lock().unwrap_or_else(PoisonError::into_inner).apply(event);
        }
        self.last.store(event.seq, Ordering::Release);
    }

    /// What was counted, or else what the log still has of it; and then what the run has not been
    /// asked for yet.
    pub(crate) fn diagnostics(&self, log: &Arc<SessionLog>, run: &RunId) -> Diagnostics {
        let last = self.last.load(Ordering::Acquire);
        if last == 0 {
            return Diagnostics::default();
        }
        let (mut diagnostics, from) = match &self.kept {
            Some(kept) => {
                let kept = kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let from = kept.seq + 1;
                (kept, from)
            }
            None => (Diagnostics::default(), self.first.load(Ordering::Relaxed)),
        };
        let mut rest = log.recent_from(from);
        while let Some(event) = rest.try_next() {
            let is_gap = matches!(event.kind, EventKind::Gap { .. });
            if event.seq <= last && !is_gap {
                diagnostics.apply(&event);
            } else if is_gap || event.run_id() == Some(run) {
                diagnostics.apply_unread(&event);
            }
        }
        diagnostics
    }
}
