//! What the writer is asked, and when it has waited long enough for more.

use std::{fmt, sync::PoisonError, time::Instant};

use super::{COMMIT_AFTER, lines::Lines, op::Op};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// How many requests share a transaction at most.
pub(super) const GROUP: usize = 1024;

/// Its length is bounded by the logs' `settle`: producers wait when their log's record is behind.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Default)]
struct State {
    lines: Lines,
    /// The last group ended although there was more, which has waited already.
    is_cut: bool,
    is_over: bool,
}

impl State {
    fn is_due(&self) -> bool {
        self.is_over || self.is_cut || self.lines.has_urgent() || self.lines.len() >= GROUP
    }
}

impl Queue {
    pub(super) fn push(&self, op: Op) {
        let mut state = self.lock();
        let (was_empty, was_due) = (state.lines.len() == 0, state.is_due());
        state.lines.push(op);
        let is_news = was_empty || (state.is_due() && !was_due);
        drop(state);
        if is_news {
            self.filled.notify_one();
        }
    }

    /// Nothing more comes.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.filled.notify_one();
    }

    /// Waits until a group is due. Returns whether one of its requests is durable; `None` after the
    /// last request.
    pub(super) fn due(&self) -> Option<bool> {
        let mut state = self.lock();
        while state.lines.len() == 0 {
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
        Some(state.lines.has_durable())
    }

    /// Takes the next request, unless it is durable and `durable` is `false`.
    pub(super) fn pop(&self, durable: bool) -> Option<Op> {
        self.pop_if(|op| durable || !op.is_durable())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().lines.len() == 0
    }

    /// Takes the next request, as [`Lines::pop`] does.
    pub(super) fn pop_if(&self, is_taken: impl FnOnce(&Op) -> bool) -> Option<Op> {
        let mut state = self.lock();
        let op = state.lines.pop(is_taken);
        state.is_cut = op.is_some() && state.lines.len() > 0;
        op
    }

    /// Waits until there is news or the time is over, which it returns then.
    #[cfg(not(shuttle))]
    fn wait_until<'a>(&self, due: Instant, state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, bool) {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (state, true);
        }
        (self.filled.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0, false)
    }

    /// A model has no time: it is over whenever this thread is next.
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
        f.debug_struct("Queue").field("waiting", &self.lock().lines.len()).finish_non_exhaustive()
    }
}
