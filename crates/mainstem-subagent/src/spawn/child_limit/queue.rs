//! Permits, and the queues for them.

use std::sync::Arc;

use mainstem_react::RunContext;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

/// Permits in the foreground, and as many in the background.
#[derive(Debug)]
pub(super) struct PermitQueues {
    foreground: PermitQueue,
    background: PermitQueue,
}

/// Permits, and the queue for them.
#[derive(Debug)]
pub(super) struct PermitQueue {
    permits: Arc<Semaphore>,
    /// Serializes `acquire`, so that permits are granted in the order of the queue.
    head: Mutex<()>,
}

impl PermitQueues {
    pub(super) fn new(permits: usize) -> Self {
        Self { foreground: PermitQueue::new(permits), background: PermitQueue::new(permits) }
    }

    /// Returns the queue for a child of the context's agent.
    pub(super) fn of(&self, cx: &RunContext) -> &PermitQueue {
        if cx.sink().task().is_some() { &self.background } else { &self.foreground }
    }
}

impl PermitQueue {
    fn new(permits: usize) -> Self {
        let permits = Arc::new(Semaphore::new(permits.clamp(1, Semaphore::MAX_PERMITS)));
        Self { permits, head: Mutex::new(()) }
    }

    /// Waits for a permit, in the queue if the agent is new. An agent that reacquires a permit
    /// passes the queue.
    pub(super) async fn acquire(&self, is_new: bool) -> Option<OwnedSemaphorePermit> {
        let _head = if is_new { Some(self.head.lock().await) } else { None };
        // The semaphore is never closed.
        self.permits.clone().acquire_owned().await.ok()
    }

    /// Returns a permit if one is free and the queue is empty.
    pub(super) fn try_acquire(&self) -> Option<OwnedSemaphorePermit> {
        let _head = self.head.try_lock().ok()?;
        self.permits.clone().try_acquire_owned().ok()
    }
}
