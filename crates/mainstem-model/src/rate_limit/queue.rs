//! The order of waiting calls: in turn by session, by arrival within a session. Pure.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    task::Waker,
    time::Duration,
};

use tokio::time::Instant;

/// How long a call that was woken may take to poll. After that it is passed over until it polls: a
/// caller that reads no events must not hold back other callers.
pub(super) const PATIENCE: Duration = Duration::from_millis(250);

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    round: u64,
    number: u64,
}

/// Waiting calls. In each round, every session has one turn (start-time fair queueing).
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The round of the call that left last.
    round: u64,
    /// How many calls have joined.
    joined: u64,
    waiting: BTreeMap<Ticket, Waiter>,
    /// The last round in which a session has a turn, if it is a later one.
    sessions: HashMap<Arc<str>, u64>,
}

#[derive(Debug, Default)]
struct Waiter {
    waker: Option<Waker>,
    /// When it was woken, if it has not polled since.
    woken: Option<Instant>,
}

impl Queue {
    /// Adds a call of a session.
    pub(super) fn join(&mut self, session: &Arc<str>) -> Ticket {
        if self.sessions.len() > 2 * self.waiting.len() + 16 {
            self.sessions.retain(|_, last| *last > self.round);
        }
        let last = self.sessions.entry(session.clone()).or_default();
        *last = (*last).max(self.round) + 1;
        self.joined += 1;
        let ticket = Ticket { round: *last, number: self.joined };
        self.waiting.insert(ticket, Waiter::default());
        ticket
    }

    /// Adds a call again at its former place, because the service refused it.
    pub(super) fn join_again(&mut self, ticket: Ticket) {
        self.waiting.insert(ticket, Waiter::default());
    }

    /// Returns how many calls are before this one.
    pub(super) fn ahead(&self, ticket: Ticket) -> usize {
        self.waiting.range(..ticket).count()
    }

    /// Notes that a call polls; returns `true` if it is its turn.
    pub(super) fn is_turn(&mut self, ticket: Ticket, waker: &Waker, now: Instant) -> bool {
        if let Some(waiter) = self.waiting.get_mut(&ticket) {
            (waiter.waker, waiter.woken) = (Some(waker.clone()), None);
        }
        self.first(now) == Some(ticket)
    }

    /// Removes a call whose turn it was.
    pub(super) fn served(&mut self, ticket: Ticket) {
        self.round = self.round.max(ticket.round);
        self.leave(ticket);
    }

    /// Removes a call.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
    }

    /// Wakes the call whose turn it is, once until it polls.
    pub(super) fn wake_first(&mut self, now: Instant) {
        let first = self.first(now).and_then(|first| self.waiting.get_mut(&first));
        if let Some(Waiter { waker: Some(waker), woken: woken @ None }) = first {
            *woken = Some(now);
            waker.wake_by_ref();
        }
    }

    fn first(&self, now: Instant) -> Option<Ticket> {
        let is_present = |waiter: &Waiter| {
            waiter.woken.is_none_or(|woken| now.saturating_duration_since(woken) < PATIENCE)
        };
        self.waiting.iter().find(|(_, waiter)| is_present(waiter)).map(|(ticket, _)| *ticket)
    }
}

#[cfg(test)]
mod tests;
