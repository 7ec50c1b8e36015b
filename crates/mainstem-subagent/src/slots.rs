//! Limits how many children execute at once.
//!
//! A child holds a permit while it runs, and lends it out while it waits for children of its own: so a parent never holds what its
//! children wait for. Background tasks have separate permits, so that a paused caller does not block them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashmap::DashMap;
use mainstem_message::AgentKey;
use mainstem_tool::RunContext;
use tokio::sync::{Mutex as Mutual, OwnedSemaphorePermit, Semaphore};

use crate::{SpawnError, idle::Waiting};

#[derive(Debug)]
pub(crate) struct Slots {
    lines: Lines,
    held: DashMap<AgentKey, Arc<Slot>>,
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

/// How many children of one run execute at once, within the limit of its session. It is an extension of the run's context.
#[derive(Debug)]
pub struct RunPlaces(Lines);

/// One child's permits: its run's if that has a limit of its own, and the session's.
#[derive(Debug)]
struct Slot {
    of: Vec<Arc<Semaphore>>,
    hold: Mutex<Hold>,
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
pub(crate) struct Lent {
    slot: Option<Arc<Slot>>,
    _waiting: Waiting,
}

impl Slots {
    pub(crate) fn new(children: usize) -> Self {
        Self { lines: Lines::new(children), held: DashMap::new() }
    }

    /// Waits for a place, first come, first served; not beyond a cancel of the caller.
    pub(crate) async fn enter(&self, cx: &RunContext) -> Result<Place<'_>, SpawnError> {
        let own = cx.get::<RunPlaces>();
        // The run's first: a child that waits there takes no place from others.
        let lines: Vec<_> =
            own.iter().map(|own| &own.0).chain([&self.lines]).map(|lines| lines.of(cx)).collect();
        let mut permits = Vec::with_capacity(lines.len());
        for line in &lines {
            permits.extend(tokio::select! {
                biased;
                () = cx.cancelled() => return Err(SpawnError::Interrupted),
                permit = line.pass() => permit,
            });
        }
        let of = lines.iter().map(|line| line.places.clone()).collect();
        let hold = Mutex::new(Hold { permits, waiting: 0, is_over: false });
        Ok(Place { slots: self, slot: Arc::new(Slot { of, hold }), key: None })
    }

    /// Lends out the permit of an agent that is about to wait for a child.
    pub(crate) fn lend(&self, cx: &RunContext) -> Lent {
        let slot = cx.agent_key().and_then(|key| self.held.get(key).map(|slot| slot.clone()));
        if let Some(slot) = &slot {
            let mut hold = slot.hold();
            hold.waiting += 1;
            hold.permits.clear();
        }
        Lent { slot, _waiting: Waiting::of(cx) }
    }
}

impl RunPlaces {
    /// Creates the permits of a run: `children`, at least 1.
    pub fn new(children: usize) -> Self {
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

    async fn pass(&self) -> Option<OwnedSemaphorePermit> {
        let _head = self.head.lock().await;
        // Never closed; without a permit a child would merely not wait for others.
        self.places.clone().acquire_owned().await.ok()
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
    }
}

impl Lent {
    /// Takes the place back before the caller goes on, unless another of its calls still waits.
    pub(crate) async fn take_back(mut self) {
        let Some(slot) = self.slot.take() else { return };
        if !slot.waits_no_more() {
            return;
        }
        let mut permits = Vec::with_capacity(slot.of.len());
        for places in &slot.of {
            permits.extend(places.clone().acquire_owned().await.ok());
        }
        let mut hold = slot.hold();
        // Another call may have begun to wait meanwhile; it takes the place back when it goes on.
        if hold.waiting == 0 && !hold.is_over {
            hold.permits = permits;
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot {
            slot.waits_no_more();
        }
    }
}

impl Slot {
    /// One call waits no more. Whether the child is in need of its place again.
    fn waits_no_more(&self) -> bool {
        let mut hold = self.hold();
        hold.waiting -= 1;
        hold.waiting == 0 && !hold.is_over
    }

    fn hold(&self) -> MutexGuard<'_, Hold> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use mainstem_testing::{child_context, context};

    use super::*;

    fn child(session: &str) -> RunContext {
        child_context(&context("s").build(), "kid", session)
    }

    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    fn key(cx: &RunContext) -> AgentKey {
        cx.agent_key().unwrap().clone()
    }

    #[test]
    fn who_waits_lends_its_place_and_holds_one_again_afterwards() {
        let (slots, one, two) = (Slots::new(1), child("one"), child("two"));
        let mut place = now(slots.enter(&one)).unwrap().unwrap();
        place.belongs_to(&key(&one));
        assert!(now(slots.enter(&two)).is_none());
        let lent = slots.lend(&one);
        let other = now(slots.enter(&two)).unwrap().unwrap();
        let mut back = Box::pin(lent.take_back());
        assert!(now(back.as_mut()).is_none());
        drop(other);
        assert!(now(back.as_mut()).is_some());
        assert!(now(slots.enter(&two)).is_none());
        drop(place);
        assert!(now(slots.enter(&two)).is_some());
    }

    #[test]
    fn who_came_first_goes_first_in_whichever_order_they_are_polled() {
        let (slots, cx) = (Slots::new(2), child("one"));
        let places = [now(slots.enter(&cx)).unwrap().unwrap(), now(slots.enter(&cx)).unwrap().unwrap()];
        let (mut first, mut second) = (Box::pin(slots.enter(&cx)), Box::pin(slots.enter(&cx)));
        assert!(now(first.as_mut()).is_none() && now(second.as_mut()).is_none());
        drop(places);
        assert!(now(second.as_mut()).is_none(), "both have a place, but it is not its turn");
        assert!(now(first.as_mut()).is_some());
        assert!(now(second.as_mut()).is_some());
    }

    #[test]
    fn a_call_that_begins_to_wait_while_another_goes_on_leaves_no_place_held() {
        let (slots, one, two) = (Slots::new(1), child("one"), child("two"));
        let mut place = now(slots.enter(&one)).unwrap().unwrap();
        place.belongs_to(&key(&one));
        let first = slots.lend(&one);
        let other = now(slots.enter(&two)).unwrap().unwrap();
        let mut back = Box::pin(first.take_back());
        assert!(now(back.as_mut()).is_none());
        let second = slots.lend(&one);
        drop(other);
        assert!(now(back.as_mut()).is_some());
        // The first goes on, but the child still waits for what the second began: that must find a place.
        assert!(now(slots.enter(&two)).is_some());
        assert!(now(second.take_back()).is_some());
        assert!(now(slots.enter(&two)).is_none());
    }

    #[test]
    fn a_child_that_left_takes_nothing_back() {
        let (slots, one, two) = (Slots::new(1), child("one"), child("two"));
        let mut place = now(slots.enter(&one)).unwrap().unwrap();
        place.belongs_to(&key(&one));
        let lent = slots.lend(&one);
        // Its next turn has begun before the place of this one is given back.
        let mut next = now(slots.enter(&one)).unwrap().unwrap();
        next.belongs_to(&key(&one));
        drop(place);
        assert!(now(lent.take_back()).is_some());
        let lent = slots.lend(&one);
        assert!(now(slots.enter(&two)).is_some());
        drop(lent);
        drop(next);
        assert!(slots.held.is_empty());
    }
}
