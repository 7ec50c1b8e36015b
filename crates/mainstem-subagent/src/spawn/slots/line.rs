//! Permits, and the queues for them.

use std::sync::Arc;

use mainstem_react::RunContext;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

/// Permits in the foreground, and as many in the background.
#[derive(Debug)]
pub(super) struct Lines {
    foreground: Line,
    background: Line,
}

/// Permits, and the queue for them.
#[derive(Debug)]
pub(super) struct Line {
    permits: Arc<Semaphore>,
    /// Held by the first in the queue: two that get permits at once could go on in another order.
    head: Mutex<()>,
}

impl Lines {
    pub(super) fn new(permits: usize) -> Self {
        Self { foreground: Line::new(permits), background: Line::new(permits) }
    }

    /// Returns the line for a child of the context's agent.
    pub(super) fn of(&self, cx: &RunContext) -> &Line {
        if cx.sink().task().is_some() { &self.background } else { &self.foreground }
    }
}

impl Line {
    fn new(permits: usize) -> Self {
        let permits = Arc::new(Semaphore::new(permits.clamp(1, Semaphore::MAX_PERMITS)));
        Self { permits, head: Mutex::new(()) }
    }

    /// Waits for a permit, in the queue if the agent is new; one that has lent out its permit does
    /// not queue again.
    pub(super) async fn pass(&self, is_new: bool) -> Option<OwnedSemaphorePermit> {
        let _head = if is_new { Some(self.head.lock().await) } else { None };
        // Never closed; without a permit a child would only not wait for others.
        self.permits.clone().acquire_owned().await.ok()
    }

    /// Returns a permit if one is free and the queue is empty.
    pub(super) fn try_pass(&self) -> Option<OwnedSemaphorePermit> {
        let _head = self.head.try_lock().ok()?;
        self.permits.clone().try_acquire_owned().ok()
    }
}
