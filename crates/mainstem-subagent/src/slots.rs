//! How many children are at work at once.
//!
//! A child holds a permit while it works, and lends it out while it waits for children of its own: so a parent never holds what its
//! children wait for. What is in the background has permits of its own, for a caller who pauses must not hold it up.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use dashmap::DashMap;
use mainstem_message::AgentKey;
use mainstem_tool::RunContext;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::idle::Waiting;

#[derive(Debug)]
pub(crate) struct Slots {
    foreground: Arc<Semaphore>,
    background: Arc<Semaphore>,
    held: DashMap<AgentKey, Arc<Slot>>,
}

/// One child's permit.
#[derive(Debug)]
struct Slot {
    of: Arc<Semaphore>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    /// How many of its calls wait for children.
    waiting: AtomicUsize,
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
pub(crate) struct Lent {
    slot: Option<Arc<Slot>>,
    _waiting: Waiting,
}

impl Slots {
    pub(crate) fn new(children: usize) -> Self {
        let semaphore = || Arc::new(Semaphore::new(children.clamp(1, Semaphore::MAX_PERMITS)));
        Self { foreground: semaphore(), background: semaphore(), held: DashMap::new() }
    }

    /// Waits for a place, first come, first served.
    pub(crate) async fn enter(&self, cx: &RunContext) -> Place<'_> {
        let of = if cx.sink().task().is_some() { &self.background } else { &self.foreground };
        // Never closed; without a permit a child would merely not wait for others.
        let permit = of.clone().acquire_owned().await.ok();
        let slot = Slot { of: of.clone(), permit: Mutex::new(permit), waiting: AtomicUsize::new(0) };
        Place { slots: self, slot: Arc::new(slot), key: None }
    }

    /// Lends out the place of whoever is about to wait for a child.
    pub(crate) fn lend(&self, cx: &RunContext) -> Lent {
        let slot = cx.agent_key().and_then(|key| self.held.get(key).map(|slot| slot.clone()));
        if let Some(slot) = &slot
            && slot.waiting.fetch_add(1, Ordering::AcqRel) == 0
        {
            slot.put(None);
        }
        Lent { slot, _waiting: Waiting::of(cx) }
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
            self.slots.held.remove(key);
        }
        self.slot.put(None);
    }
}

impl Lent {
    /// Takes the place back before the caller goes on, unless another of its calls still waits.
    pub(crate) async fn take_back(mut self) {
        let Some(slot) = self.slot.take() else { return };
        if slot.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
            let permit = slot.of.clone().acquire_owned().await.ok();
            slot.put(permit);
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot {
            slot.waiting.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Slot {
    fn put(&self, permit: Option<OwnedSemaphorePermit>) {
        *self.permit.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }
}
