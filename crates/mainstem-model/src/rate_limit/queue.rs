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
    /// The round of the call that was served last.
    round: u64,
    /// How many calls have joined.
    joined: u64,
    waiting: BTreeMap<Ticket, Waiter>,
    /// The sessions with waiting calls.
    sessions: HashMap<Arc<str>, Rounds>,
}

/// The rounds of a session.
#[derive(Debug)]
struct Rounds {
    /// The last round in which it has a turn.
    last: u64,
    waiting: usize,
}

#[derive(Debug)]
struct Waiter {
    session: Arc<str>,
    waker: Option<Waker>,
    /// When it was woken, if it has not polled since.
    woken: Option<Instant>,
}

impl Queue {
    /// Adds a call of a session.
    pub(super) fn join(&mut self, session: &Arc<str>) -> Ticket {
        let round = self.sessions.get(session).map_or(self.round, |rounds| rounds.last.max(self.round)) + 1;
        self.joined += 1;
        self.join_again(session, Ticket { round, number: self.joined })
    }

    /// Adds a call again at its former place, because the service refused it.
    pub(super) fn join_again(&mut self, session: &Arc<str>, ticket: Ticket) -> Ticket {
        let waiter = Waiter { session: session.clone(), waker: None, woken: None };
        if self.waiting.insert(ticket, waiter).is_none() {
            let new = || Rounds { last: ticket.round, waiting: 0 };
            let rounds = self.sessions.entry(session.clone()).or_insert_with(new);
            (rounds.last, rounds.waiting) = (rounds.last.max(ticket.round), rounds.waiting + 1);
        }
        ticket
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
        self.remove(ticket, 0);
    }

    /// Removes a call that gives up its place. Later calls of its session move up.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.remove(ticket, 1);
    }

    fn remove(&mut self, ticket: Ticket, rounds: u64) {
        let Some(Waiter { session, .. }) = self.waiting.remove(&ticket) else { return };
        let Some(of_session) = self.sessions.get_mut(&session) else { return };
        of_session.last = of_session.last.saturating_sub(rounds);
        of_session.waiting -= 1;
        if of_session.waiting == 0 {
            self.sessions.remove(&session);
        }
    }

    /// Wakes the call whose turn it is, once until it polls.
    pub(super) fn wake_first(&mut self, now: Instant) {
        let first = self.first(now).and_then(|first| self.waiting.get_mut(&first));
        if let Some(Waiter { waker: Some(waker), woken: woken @ None, .. }) = first {
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
