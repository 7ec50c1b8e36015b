//! The queue of requests, and when a group of them is due.

use std::{fmt, sync::PoisonError, time::Instant};

use super::{COMMIT_AFTER, op::Op};
use crate::{
    backend::{Request, TenantQueues},
    sync::{Condvar, Mutex, MutexGuard},
};

/// The maximum number of requests in a transaction.
pub(super) const GROUP: usize = 1024;

/// The length is bounded by the logs' `settle`: producers wait when their log's record is behind.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Default)]
struct State {
    requests: TenantQueues<Op>,
    /// Whether the last group was cut: the requests after it have waited already.
    is_cut: bool,
    is_over: bool,
}

impl State {
    fn is_due(&self) -> bool {
        self.is_over || self.is_cut || self.requests.has_urgent() || self.requests.len() >= GROUP
    }
}

impl Queue {
    pub(super) fn push(&self, op: Op) {
        let mut state = self.lock();
        let (was_empty, was_due) = (state.requests.is_empty(), state.is_due());
        state.requests.push(op);
        let is_news = was_empty || (state.is_due() && !was_due);
        drop(state);
        if is_news {
            self.filled.notify_one();
        }
    }

    /// Ends the queue: no request follows.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.filled.notify_one();
    }

    /// Waits until a group is due. Returns whether one of its requests is durable; `None` after the
    /// last request.
    pub(super) fn due(&self) -> Option<bool> {
        let mut state = self.lock();
        while state.requests.is_empty() {
            if state.is_over {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let due = Instant::now() + COMMIT_AFTER;
        let mut is_over = false;
        while !state.is_due() && !is_over {
            (state, is_over) = self.wait_until(due, state);
        }
        Some(state.requests.has_durable())
    }

    /// Takes the next request, unless it is durable and `durable` is `false`.
    pub(super) fn pop(&self, durable: bool) -> Option<Op> {
        self.pop_if(|op| durable || !op.is_durable())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().requests.is_empty()
    }

    /// Takes the next request, as [`TenantQueues::pop`] does.
    pub(super) fn pop_if(&self, is_taken: impl FnOnce(&Op) -> bool) -> Option<Op> {
        let mut state = self.lock();
        let op = state.requests.pop(is_taken);
        state.is_cut = op.is_some() && !state.requests.is_empty();
        op
    }

    /// Waits until a request arrives or the time is over; returns `true` for the latter.
    #[cfg(not(shuttle))]
    fn wait_until<'a>(&self, due: Instant, state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, bool) {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (state, true);
        }
        (self.filled.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0, false)
    }

    /// In a model no time passes: it is over when this thread runs next.
    #[cfg(shuttle)]
    fn wait_until<'a>(&'a self, _: Instant, state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, bool) {
        drop(state);
        (self.lock(), true)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("waiting", &self.lock().requests.len()).finish_non_exhaustive()
    }
}
