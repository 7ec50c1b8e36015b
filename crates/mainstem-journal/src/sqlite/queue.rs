//! The queue of requests, and when a group of them is due.

use std::{fmt, sync::PoisonError, time::Instant};

use super::{COMMIT_AFTER, op::Op};
use crate::{
    backend::{Request, Waiting},
    sync::{Condvar, Mutex, MutexGuard},
};

/// The maximum number of requests in a transaction.
pub(super) const GROUP: usize = 1024;

type Guard<'a> = MutexGuard<'a, Waiting<Op>>;

/// The length is bounded by the logs' `settle`: producers wait when their log's record is behind.
pub(super) struct Queue {
    waiting: Mutex<Waiting<Op>>,
    filled: Condvar,
}

impl Default for Queue {
    fn default() -> Self {
        Self { waiting: Mutex::new(Waiting::new(GROUP)), filled: Condvar::default() }
    }
}

impl Queue {
    pub(super) fn push(&self, op: Op) {
        let is_news = self.lock().push(op);
        if is_news {
            self.filled.notify_one();
        }
    }

    /// Ends the queue: no request follows.
    pub(super) fn end(&self) {
        self.lock().end();
        self.filled.notify_one();
    }

    /// Waits until a group is due. Returns whether one of its requests is durable; `None` after the
    /// last request.
    pub(super) fn due(&self) -> Option<bool> {
        let mut waiting = self.lock();
        while waiting.is_empty() {
            if waiting.is_over() {
                return None;
            }
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let due = Instant::now() + COMMIT_AFTER;
        let mut is_late = false;
        while !waiting.is_due() && !is_late {
            (waiting, is_late) = self.wait_until(due, waiting);
        }
        Some(waiting.has_durable())
    }

    /// Takes the next request, unless it is durable and `durable` is `false`.
    pub(super) fn pop(&self, durable: bool) -> Option<Op> {
        self.pop_if(|op| durable || !op.is_durable())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Takes the next request, as [`Waiting::pop`] does.
    pub(super) fn pop_if(&self, is_taken: impl FnOnce(&Op) -> bool) -> Option<Op> {
        self.lock().pop(is_taken)
    }

    /// Waits until a request arrives or the time is over; returns `true` for the latter.
    #[cfg(not(shuttle))]
    fn wait_until<'a>(&self, due: Instant, waiting: Guard<'a>) -> (Guard<'a>, bool) {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (waiting, true);
        }
        (self.filled.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0, false)
    }

    /// In a model no time passes: it is over when this thread runs next.
    #[cfg(shuttle)]
    fn wait_until<'a>(&'a self, _: Instant, waiting: Guard<'a>) -> (Guard<'a>, bool) {
        drop(waiting);
        (self.lock(), true)
    }

    fn lock(&self) -> Guard<'_> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("waiting", &self.lock().len()).finish_non_exhaustive()
    }
}
