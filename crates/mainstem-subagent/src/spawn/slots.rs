//! Limits how many children execute at once.
//!
//! A child holds a permit while it runs, and lends it out while it waits for children of its own:
//! so a parent never holds what its children wait for. Background tasks have separate permits, so
//! that a paused caller does not block them: an agent that becomes part of a task while it waits
//! changes to the line of those.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashmap::DashMap;
use mainstem_message::AgentKey;
use mainstem_react::RunContext;
use tokio::sync::{Mutex as Mutual, Notify, OwnedSemaphorePermit, Semaphore};

use crate::{error::SpawnError, member::Member, spawn::idle::Waiting};

#[derive(Debug)]
pub(crate) struct Slots {
    lines: Lines,
    held: DashMap<AgentKey, Arc<Slot>>,
    /// Notified after a child has moved to the background.
    moved: Notify,
}

/// Places in the foreground, and as many in the background.
#[derive(Debug)]
struct Lines {
    foreground: Line,
    background: Line,
}

/// Places, and those who wait for one.
#[derive(Debug)]
struct Line {
    places: Arc<Semaphore>,
    /// Held by the first of them: two who were given places at once could go on in another order.
    head: Mutual<()>,
}

/// How many children of one run execute at once, within the limit of its session. Part of a
/// [`Member`].
#[derive(Debug)]
pub(crate) struct RunPlaces(Lines);

/// One child's permits: its run's if that has a limit of its own, and the session's.
#[derive(Debug)]
struct Slot {
    hold: Mutex<Hold>,
    /// Notified when the child may need no permits any longer.
    changed: Notify,
}

#[derive(Debug)]
struct Hold {
    permits: Vec<OwnedSemaphorePermit>,
    /// How many of its calls wait for children.
    waiting: usize,
    /// The child has left, or went on in the background.
    is_over: bool,
}

/// A place among those who work; given back on drop.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    slots: &'a Slots,
    slot: Arc<Slot>,
    key: Option<AgentKey>,
}

/// The caller's own place, lent out while it waits.
#[derive(Debug)]
pub(crate) struct Lent<'a> {
    slots: &'a Slots,
    cx: &'a RunContext,
    slot: Option<Arc<Slot>>,
    _waiting: Waiting,
}

impl Slots {
    pub(crate) fn new(children: usize) -> Self {
        Self { lines: Lines::new(children), held: DashMap::new(), moved: Notify::new() }
    }

    /// Returns a place if one is free and no other call waits for it. It polls nothing: near the
    /// end of a task's budget, tokio's semaphores are pending although a permit is free.
    pub(crate) fn try_enter(&self, cx: &RunContext) -> Option<Place<'_>> {
        let permits = self.lines(cx).map(Line::try_pass).collect::<Option<_>>()?;
        Some(self.place(permits))
    }

    /// Waits for a place, first come, first served; not beyond a cancel of the caller.
    pub(crate) async fn enter(&self, cx: &RunContext) -> Result<Place<'_>, SpawnError> {
        tokio::select! {
            biased;
            () = cx.cancelled() => Err(SpawnError::Interrupted),
            permits = self.permits(cx, true) => Ok(self.place(permits)),
        }
    }

    /// Wakes the agents that wait for a place in the foreground and are part of a background task
    /// by now.
    pub(crate) fn notify_moved(&self) {
        self.moved.notify_waiters();
    }

    fn place(&self, permits: Vec<OwnedSemaphorePermit>) -> Place<'_> {
        Place { slots: self, slot: Arc::new(Slot::new(permits)), key: None }
    }

    /// Waits for a permit of each line, of the background if the agent is or becomes part of a
    /// task. `is_new` is as in [`Line::pass`].
    async fn permits(&self, cx: &RunContext, is_new: bool) -> Vec<OwnedSemaphorePermit> {
        if cx.sink().task().is_none() {
            tokio::select! {
                biased;
                () = self.until_moved(cx) => {}
                permits = self.pass(cx, is_new) => return permits,
            }
        }
        self.pass(cx, is_new).await
    }

    async fn pass(&self, cx: &RunContext, is_new: bool) -> Vec<OwnedSemaphorePermit> {
        let mut permits = Vec::new();
        // All of one kind, even if the agent moves to the background meanwhile.
        let lines: Vec<_> = self.lines(cx).collect();
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

    /// The run's first: a child that waits there takes no place from others.
    fn lines<'a>(&'a self, cx: &'a RunContext) -> impl Iterator<Item = &'a Line> + use<'a> {
        let own = Member::of(cx).ok().and_then(|member| member.places.as_deref());
        own.map(|own| &own.0).into_iter().chain([&self.lines]).map(|lines| lines.of(cx))
    }

    /// Lends out the permit of an agent that is about to wait for a child.
    pub(crate) fn lend<'a>(&'a self, cx: &'a RunContext) -> Lent<'a> {
        let slot = cx.agent_key().and_then(|key| self.held.get(key).map(|slot| slot.clone()));
        if let Some(slot) = &slot {
            let mut hold = slot.hold();
            hold.waiting += 1;
            hold.permits.clear();
            drop(hold);
            slot.changed.notify_waiters();
        }
        Lent { slots: self, cx, slot, _waiting: Waiting::of(cx) }
    }
}

impl RunPlaces {
    /// Creates the permits of a run: `children`, at least 1.
    pub(crate) fn new(children: usize) -> Self {
        Self(Lines::new(children))
    }
}

impl Lines {
    fn new(places: usize) -> Self {
        Self { foreground: Line::new(places), background: Line::new(places) }
    }

    fn of(&self, cx: &RunContext) -> &Line {
        if cx.sink().task().is_some() { &self.background } else { &self.foreground }
    }
}

impl Line {
    fn new(places: usize) -> Self {
        let places = Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS)));
        Self { places, head: Mutual::new(()) }
    }

    /// Waits for a permit, in line if the agent is new; one that has lent out its permit does not
    /// queue again.
    async fn pass(&self, is_new: bool) -> Option<OwnedSemaphorePermit> {
        let _head = if is_new { Some(self.head.lock().await) } else { None };
        // Never closed; without a permit a child would merely not wait for others.
        self.places.clone().acquire_owned().await.ok()
    }

    fn try_pass(&self) -> Option<OwnedSemaphorePermit> {
        let _head = self.head.try_lock().ok()?;
        self.places.clone().try_acquire_owned().ok()
    }
}

impl Place<'_> {
    /// Whose place it is.
    pub(crate) fn belongs_to(&mut self, key: &AgentKey) {
        self.slots.held.insert(key.clone(), self.slot.clone());
        self.key = Some(key.clone());
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            // A turn that came after may have a place of its own by now.
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
    /// Takes the place back before the caller goes on, unless another of its calls still waits.
    pub(crate) async fn take_back(mut self) {
        let Some(slot) = self.slot.take() else { return };
        slot.stops_waiting();
        tokio::select! {
            biased;
            // Another call of the agent may take it back first, or begin to wait; that one then
            // takes it back when it goes on.
            () = slot.until_settled() => {}
            permits = self.slots.permits(self.cx, false) => slot.refill(permits),
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
