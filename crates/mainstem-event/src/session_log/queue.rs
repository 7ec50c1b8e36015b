//! Producers that wait for the caller, first come, first served. Every step costs the same however
//! many wait.

use std::{collections::VecDeque, task::Waker};

use super::state::Wakers;
use crate::sink::Mode;

/// A place in the queue; one that is no longer in it may go on.
pub(crate) type Ticket = u64;

#[derive(Default)]
pub(crate) struct Queue {
    /// The ticket at the front.
    first: Ticket,
    /// Those who gave up leave an empty place.
    places: VecDeque<Option<Waiting>>,
}

pub(crate) struct Waiting {
    waker: Waker,
    mode: Mode,
}

impl Queue {
    pub(crate) fn join(&mut self, waker: &Waker, mode: &Mode) -> Ticket {
        self.places.push_back(Some(Waiting { waker: waker.clone(), mode: mode.clone() }));
        self.first + self.places.len() as Ticket - 1
    }

    fn place(&mut self, ticket: Ticket) -> Option<&mut Option<Waiting>> {
        self.places.get_mut(usize::try_from(ticket.checked_sub(self.first)?).ok()?)
    }

    /// Whether a producer still waits; if so, with this waker.
    pub(crate) fn still_waits(&mut self, ticket: Ticket, waker: &Waker) -> bool {
        let Some(Some(waiting)) = self.place(ticket) else { return false };
        waiting.waker.clone_from(waker);
        true
    }

    /// A producer gives up; `None` if it had been let on.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<Waiting> {
        self.place(ticket)?.take()
    }

    /// Lets the first go on.
    pub(crate) fn grant(&mut self) -> Option<Waker> {
        while let Some(place) = self.places.pop_front() {
            self.first += 1;
            if let Some(waiting) = place {
                return Some(waiting.waker);
            }
        }
        None
    }

    pub(crate) fn grant_all(&mut self) -> Wakers {
        self.first += self.places.len() as Ticket;
        self.places.drain(..).flatten().map(|waiting| waiting.waker).collect()
    }

    /// Lets those go on that are in the background by now.
    pub(crate) fn grant_moved(&mut self) -> Wakers {
        let has_moved = |waiting: &mut Waiting| waiting.mode.task().is_some();
        self.places.iter_mut().filter_map(|place| Some(place.take_if(has_moved)?.waker)).collect()
    }
}
