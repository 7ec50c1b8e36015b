//! Limits how many children execute at once.
//!
//! A child holds a permit while it runs, and releases it while it waits for children of its own, so
//! that a parent never holds what its children wait for. Background tasks have separate permits, so
//! that a paused caller does not block them. An agent that is promoted to a task while it waits
//! changes to the background's queue.

mod queue;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashmap::DashMap;
use mainstem_message::AgentKey;
use mainstem_react::RunContext;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use self::queue::{PermitQueue, PermitQueues};
use crate::{
    error::SpawnError,
    spawn::idle::{Waiting, Waits},
};

/// The limit of concurrent children of a session.
#[derive(Debug)]
pub(crate) struct ChildLimit {
    queues: PermitQueues,
    slots: DashMap<AgentKey, Arc<Slot>>,
    /// Notified after a child was promoted to a background task.
    promoted: Notify,
}

/// The limit of concurrent children of one run, within that of its session.
#[derive(Debug)]
pub(crate) struct RunChildLimit(PermitQueues);

/// An agent that acquires a permit for its child, or releases its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller<'a> {
    pub(crate) cx: &'a RunContext,
    /// The limit of its run.
    pub(crate) run: Option<&'a RunChildLimit>,
    /// The number of its calls that wait.
    pub(crate) waits: &'a Arc<Waits>,
}

/// One child's permits: its run's, if that has a limit of its own, and the session's.
#[derive(Debug)]
struct Slot {
    state: Mutex<SlotState>,
    /// Notified when the child may have stopped needing permits.
    changed: Notify,
}

#[derive(Debug)]
struct SlotState {
    permits: Vec<OwnedSemaphorePermit>,
    /// How many of its calls wait for children.
    waiting: usize,
    /// The child's turn has ended, or was promoted.
    is_over: bool,
}

/// A child's permits, released on drop.
#[derive(Debug)]
pub(crate) struct ChildPermit<'a> {
    limit: &'a ChildLimit,
    slot: Arc<Slot>,
    key: Option<AgentKey>,
}

/// The caller's own permits, released while it waits.
#[derive(Debug)]
pub(crate) struct ReleasedPermit<'a> {
    limit: &'a ChildLimit,
    caller: Caller<'a>,
    slot: Option<Arc<Slot>>,
    _waiting: Waiting,
}

impl ChildLimit {
    pub(crate) fn new(children: usize) -> Self {
        let queues = PermitQueues::new(children);
        Self { queues, slots: DashMap::new(), promoted: Notify::new() }
    }

    /// Returns permits if they are free and nothing queues for them. Uses tokio's `try_acquire`:
    /// once a task has used up its cooperative budget, `acquire` is pending even if a permit is
    /// free.
    pub(crate) fn try_acquire(&self, caller: Caller<'_>) -> Option<ChildPermit<'_>> {
        let permits = self.queues(caller).map(PermitQueue::try_acquire).collect::<Option<_>>()?;
        Some(self.permit(permits))
    }

    /// Waits for permits, in the order of the calls.
    ///
    /// # Errors
    /// [`SpawnError::Interrupted`] if the caller is cancelled.
    pub(crate) async fn acquire(&self, caller: Caller<'_>) -> Result<ChildPermit<'_>, SpawnError> {
        tokio::select! {
            biased;
            () = caller.cx.cancelled() => Err(SpawnError::Interrupted),
            permits = self.permits(caller, true) => Ok(self.permit(permits)),
        }
    }

    /// Wakes the agents that wait in the foreground and were promoted to a background task.
    pub(crate) fn notify_promoted(&self) {
        self.promoted.notify_waiters();
    }

    fn permit(&self, permits: Vec<OwnedSemaphorePermit>) -> ChildPermit<'_> {
        ChildPermit { limit: self, slot: Arc::new(Slot::new(permits)), key: None }
    }

    /// Waits for a permit of each queue, of the background once the agent belongs to a background
    /// task. `is_new` is as in [`PermitQueue::acquire`].
    async fn permits(&self, caller: Caller<'_>, is_new: bool) -> Vec<OwnedSemaphorePermit> {
        if caller.cx.sink().task().is_none() {
            tokio::select! {
                biased;
                () = self.wait_until_promoted(caller.cx) => {}
                permits = self.acquire_each(caller, is_new) => return permits,
            }
        }
        self.acquire_each(caller, is_new).await
    }

    async fn acquire_each(&self, caller: Caller<'_>, is_new: bool) -> Vec<OwnedSemaphorePermit> {
        let mut permits = Vec::new();
        // Chosen once: all permits are of the foreground or all of the background.
        let queues: Vec<_> = self.queues(caller).collect();
        for queue in queues {
            permits.extend(queue.acquire(is_new).await);
        }
        permits
    }

    async fn wait_until_promoted(&self, cx: &RunContext) {
        loop {
            let promoted = self.promoted.notified();
            if cx.sink().task().is_some() {
                return;
            }
            promoted.await;
        }
    }

    /// Returns the run's queue, then the session's: a child that waits for its run holds no permit
    /// of the session.
    fn queues<'a>(&'a self, caller: Caller<'a>) -> impl Iterator<Item = &'a PermitQueue> + use<'a> {
        let own = caller.run.map(|own| &own.0);
        own.into_iter().chain([&self.queues]).map(move |queues| queues.of(caller.cx))
    }

    /// Releases the permits of an agent that is about to wait.
    pub(crate) fn release_while_waiting<'a>(&'a self, caller: Caller<'a>) -> ReleasedPermit<'a> {
        let key = caller.cx.agent_key();
        let slot = key.and_then(|key| self.slots.get(key).map(|slot| slot.clone()));
        if let Some(slot) = &slot {
            let mut state = slot.state();
            state.waiting += 1;
            state.permits.clear();
            drop(state);
            slot.changed.notify_waiters();
        }
        ReleasedPermit { limit: self, caller, slot, _waiting: Waiting::new(caller.waits) }
    }
}

impl RunChildLimit {
    /// Creates the permits of a run: `children`, at least 1.
    pub(crate) fn new(children: usize) -> Self {
        Self(PermitQueues::new(children))
    }
}

impl ChildPermit<'_> {
    /// Sets the child that holds the permits.
    pub(crate) fn set_child(&mut self, key: &AgentKey) {
        self.limit.slots.insert(key.clone(), self.slot.clone());
        self.key = Some(key.clone());
    }
}

impl Drop for ChildPermit<'_> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            // The child's next turn may have permits of its own already.
            self.limit.slots.remove_if(key, |_, slot| Arc::ptr_eq(slot, &self.slot));
        }
        let mut state = self.slot.state();
        state.permits.clear();
        state.is_over = true;
        drop(state);
        self.slot.changed.notify_waiters();
    }
}

impl ReleasedPermit<'_> {
    /// Waits for the permits before the caller continues, unless another of its calls still waits.
    pub(crate) async fn reacquire(mut self) {
        let Some(slot) = self.slot.take() else { return };
        slot.end_wait();
        tokio::select! {
            biased;
            // Another call of the agent may acquire them first, or begin to wait; that one acquires
            // them when it continues.
            () = slot.wait_until_satisfied() => {}
            permits = self.limit.permits(self.caller, false) => slot.refill(permits),
        }
    }
}

impl Drop for ReleasedPermit<'_> {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot {
            slot.end_wait();
        }
    }
}

impl Slot {
    fn new(permits: Vec<OwnedSemaphorePermit>) -> Self {
        let state = SlotState { permits, waiting: 0, is_over: false };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Notes that one of the child's calls has stopped waiting.
    fn end_wait(&self) {
        self.state().waiting -= 1;
    }

    /// Gives the child its permits, if it still needs them.
    fn refill(&self, permits: Vec<OwnedSemaphorePermit>) {
        let mut state = self.state();
        if state.needs_permits() {
            state.permits = permits;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Waits until the child needs no permits.
    async fn wait_until_satisfied(&self) {
        loop {
            let changed = self.changed.notified();
            if !self.state().needs_permits() {
                return;
            }
            changed.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotState {
    fn needs_permits(&self) -> bool {
        self.permits.is_empty() && self.waiting == 0 && !self.is_over
    }
}

#[cfg(test)]
mod tests;
