//! Limits how many children execute at once.
//!
//! A child holds a permit while it runs, and lends it out while it waits for children of its own,
//! so that a parent never holds what its children wait for. Background tasks have separate permits,
//! so that a paused caller does not block them. An agent that becomes part of a task while it waits
//! changes to their queue.

mod line;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashmap::DashMap;
use mainstem_message::AgentKey;
use mainstem_react::RunContext;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use self::line::{Line, Lines};
use crate::{
    error::SpawnError,
    spawn::idle::{Waiting, Waits},
};

#[derive(Debug)]
pub(crate) struct Slots {
    lines: Lines,
    held: DashMap<AgentKey, Arc<Slot>>,
    /// Notified after a child has moved to the background.
    moved: Notify,
}

/// How many children of one run execute at once, within the limit of its session.
#[derive(Debug)]
pub(crate) struct RunSlots(Lines);

/// An agent that asks for a slot for its child, or that lends its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller<'a> {
    pub(crate) cx: &'a RunContext,
    /// The limit of its run.
    pub(crate) run: Option<&'a RunSlots>,
    /// The number of its calls that wait.
    pub(crate) waits: &'a Arc<Waits>,
}

/// One child's permits: its run's, if that has a limit of its own, and the session's.
#[derive(Debug)]
struct Slot {
    hold: Mutex<Hold>,
    /// Notified when the child may have stopped needing permits.
    changed: Notify,
}

#[derive(Debug)]
struct Hold {
    permits: Vec<OwnedSemaphorePermit>,
    /// How many of its calls wait for children.
    waiting: usize,
    /// The child's turn has ended, or goes on in the background.
    is_over: bool,
}

/// A child's hold on its slot; given back on drop.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    slots: &'a Slots,
    slot: Arc<Slot>,
    key: Option<AgentKey>,
}

/// The caller's own slot, lent out while it waits.
#[derive(Debug)]
pub(crate) struct Lent<'a> {
    slots: &'a Slots,
    caller: Caller<'a>,
    slot: Option<Arc<Slot>>,
    _waiting: Waiting,
}

impl Slots {
    pub(crate) fn new(children: usize) -> Self {
        Self { lines: Lines::new(children), held: DashMap::new(), moved: Notify::new() }
    }

    /// Returns a slot if one is free and the queue is empty. It polls nothing: near the end of a
    /// task's cooperative budget, tokio's semaphores are pending although a permit is free.
    pub(crate) fn try_enter(&self, caller: Caller<'_>) -> Option<Held<'_>> {
        let permits = self.lines(caller).map(Line::try_pass).collect::<Option<_>>()?;
        Some(self.held_with(permits))
    }

    /// Waits for a slot, first come, first served.
    ///
    /// # Errors
    /// The caller is cancelled meanwhile.
    pub(crate) async fn enter(&self, caller: Caller<'_>) -> Result<Held<'_>, SpawnError> {
        tokio::select! {
            biased;
            () = caller.cx.cancelled() => Err(SpawnError::Interrupted),
            permits = self.permits(caller, true) => Ok(self.held_with(permits)),
        }
    }

    /// Wakes the agents that wait in the foreground and have become part of a background task.
    pub(crate) fn notify_moved(&self) {
        self.moved.notify_waiters();
    }

    fn held_with(&self, permits: Vec<OwnedSemaphorePermit>) -> Held<'_> {
        Held { slots: self, slot: Arc::new(Slot::new(permits)), key: None }
    }

    /// Waits for a permit of each line, of the background if the agent is or becomes part of a
    /// task. `is_new` is as in [`Line::pass`].
    async fn permits(&self, caller: Caller<'_>, is_new: bool) -> Vec<OwnedSemaphorePermit> {
        if caller.cx.sink().task().is_none() {
            tokio::select! {
                biased;
                () = self.until_moved(caller.cx) => {}
                permits = self.pass(caller, is_new) => return permits,
            }
        }
        self.pass(caller, is_new).await
    }

    async fn pass(&self, caller: Caller<'_>, is_new: bool) -> Vec<OwnedSemaphorePermit> {
        let mut permits = Vec::new();
        // All of one kind, even if the agent moves to the background meanwhile.
        let lines: Vec<_> = self.lines(caller).collect();
        for line in lines {
            permits.extend(line.pass(is_new).await);
        }
        permits
    }

    async fn until_moved(&self, cx: &RunContext) {
        loop {
            let moved = self.moved.notified();
            if cx.sink().task().is_some() {
                return;
            }
            moved.await;
        }
    }

    /// The run's first: a child that waits there takes no permit from other runs.
    fn lines<'a>(&'a self, caller: Caller<'a>) -> impl Iterator<Item = &'a Line> + use<'a> {
        let own = caller.run.map(|own| &own.0);
        own.into_iter().chain([&self.lines]).map(move |lines| lines.of(caller.cx))
    }

    /// Lends out the permits of an agent that is about to wait.
    pub(crate) fn lend<'a>(&'a self, caller: Caller<'a>) -> Lent<'a> {
        let key = caller.cx.agent_key();
        let slot = key.and_then(|key| self.held.get(key).map(|slot| slot.clone()));
        if let Some(slot) = &slot {
            let mut hold = slot.hold();
            hold.waiting += 1;
            hold.permits.clear();
            drop(hold);
            slot.changed.notify_waiters();
        }
        Lent { slots: self, caller, slot, _waiting: Waiting::new(caller.waits) }
    }
}

impl RunSlots {
    /// Creates the permits of a run: `children`, at least 1.
    pub(crate) fn new(children: usize) -> Self {
        Self(Lines::new(children))
    }
}

impl Held<'_> {
    /// Sets the child that holds it.
    pub(crate) fn belongs_to(&mut self, key: &AgentKey) {
        self.slots.held.insert(key.clone(), self.slot.clone());
        self.key = Some(key.clone());
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            // The child's next turn may have a slot of its own already.
            self.slots.held.remove_if(key, |_, slot| Arc::ptr_eq(slot, &self.slot));
        }
        let mut hold = self.slot.hold();
        hold.permits.clear();
        hold.is_over = true;
        drop(hold);
        self.slot.changed.notify_waiters();
    }
}

impl Lent<'_> {
    /// Takes the slot back before the caller goes on, unless another of its calls still waits.
    pub(crate) async fn take_back(mut self) {
        let Some(slot) = self.slot.take() else { return };
        slot.stops_waiting();
        tokio::select! {
            biased;
            // Another call of the agent may take it back first, or begin to wait; that one then
            // takes it back when it goes on.
            () = slot.until_settled() => {}
            permits = self.slots.permits(self.caller, false) => slot.refill(permits),
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot {
            slot.stops_waiting();
        }
    }
}

impl Slot {
    fn new(permits: Vec<OwnedSemaphorePermit>) -> Self {
        let hold = Hold { permits, waiting: 0, is_over: false };
        Self { hold: Mutex::new(hold), changed: Notify::new() }
    }

    /// One of the child's calls stops waiting.
    fn stops_waiting(&self) {
        self.hold().waiting -= 1;
    }

    /// Gives the child its permits, if it still needs them.
    fn refill(&self, permits: Vec<OwnedSemaphorePermit>) {
        let mut hold = self.hold();
        if hold.needs_permits() {
            hold.permits = permits;
        }
        drop(hold);
        self.changed.notify_waiters();
    }

    /// Waits until the child needs no permits.
    async fn until_settled(&self) {
        loop {
            let changed = self.changed.notified();
            if !self.hold().needs_permits() {
                return;
            }
            changed.await;
        }
    }

    fn hold(&self) -> MutexGuard<'_, Hold> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hold {
    fn needs_permits(&self) -> bool {
        self.permits.is_empty() && self.waiting == 0 && !self.is_over
    }
}

#[cfg(test)]
mod tests;
