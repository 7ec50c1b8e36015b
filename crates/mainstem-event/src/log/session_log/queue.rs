//! Producers that wait for the caller, first come, first served. Every step costs the same for a
//! queue of any length.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    task::Waker,
};

use super::state::Wakers;
use crate::log::{mode::Mode, sync::AtomicU64};

/// A place in the queue; a producer whose place is removed may continue.
pub(crate) type Ticket = u64;

#[derive(Default)]
pub(crate) struct Queue {
    /// The ticket at the front.
    first: Ticket,
    /// A producer that has left the queue leaves an empty place.
    places: VecDeque<Option<Waiting>>,
    /// The number of producers that wait, to be read without the lock.
    waiting: Arc<AtomicU64>,
    /// The tickets of producers that were woken for their turn and have not continued yet; few.
    woken: Vec<Ticket>,
}

pub(crate) struct Waiting {
    waker: Waker,
    mode: Mode,
}

impl Queue {
    /// Returns the number of producers that wait, which stays up to date.
    pub(crate) fn waiting(&self) -> Arc<AtomicU64> {
        self.waiting.clone()
    }

    fn left(&self, producers: usize) {
        self.waiting.fetch_sub(producers as u64, Ordering::AcqRel);
    }

    pub(crate) fn join(&mut self, waker: &Waker, mode: &Mode) -> Ticket {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        self.places.push_back(Some(Waiting { waker: waker.clone(), mode: mode.clone() }));
        self.first + self.places.len() as Ticket - 1
    }

    fn place(&mut self, ticket: Ticket) -> Option<&mut Option<Waiting>> {
        self.places.get_mut(usize::try_from(ticket.checked_sub(self.first)?).ok()?)
    }

    /// Returns `true` if a producer still waits; stores its waker then.
    pub(crate) fn still_waits(&mut self, ticket: Ticket, waker: &Waker) -> bool {
        let Some(Some(waiting)) = self.place(ticket) else { return false };
        waiting.waker.clone_from(waker);
        true
    }

    /// Removes a producer that stops waiting; `None` if it had been woken.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<Waiting> {
        let left = self.place(ticket)?.take()?;
        self.left(1);
        Some(left)
    }

    /// Returns how many producers were woken for their turn, and have not continued yet.
    pub(crate) fn woken(&self) -> usize {
        self.woken.len()
    }

    /// Notes that a producer continues, or gives up; returns `true` if it was woken for its turn.
    pub(crate) fn take_turn(&mut self, ticket: Ticket) -> bool {
        let index = self.woken.iter().position(|woken| *woken == ticket);
        index.map(|index| self.woken.swap_remove(index)).is_some()
    }

    /// Removes the first producer for its turn, and returns its waker.
    pub(crate) fn grant(&mut self) -> Option<Waker> {
        while let Some(place) = self.places.pop_front() {
            let ticket = self.first;
            self.first += 1;
            if let Some(waiting) = place {
                self.woken.push(ticket);
                self.left(1);
                return Some(waiting.waker);
            }
        }
        None
    }

    /// Removes all producers, for none waits any longer.
    pub(crate) fn grant_all(&mut self) -> Wakers {
        self.woken.clear();
        self.first += self.places.len() as Ticket;
        let all: Wakers = self.places.drain(..).flatten().map(|waiting| waiting.waker).collect();
        self.left(all.len());
        all
    }

    /// Removes the producers that are in the background by now.
    pub(crate) fn grant_moved(&mut self) -> Wakers {
        let has_moved = |waiting: &mut Waiting| waiting.mode.task().is_some();
        let places = self.places.iter_mut();
        let moved: Wakers = places.filter_map(|place| Some(place.take_if(has_moved)?.waker)).collect();
        self.left(moved.len());
        moved
    }
}
