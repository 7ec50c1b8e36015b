//! What the writer is asked, in order, and when it has waited long enough for more.

use std::{collections::VecDeque, fmt, sync::PoisonError, time::Instant};

use super::{COMMIT_AFTER, op::Op};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// How many requests share a transaction at most.
const GROUP: usize = 1024;

/// Its length is bounded by the logs' `settle`: producers wait when their log's record is behind.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Default)]
struct State {
    ops: VecDeque<Op>,
    is_urgent: bool,
    is_over: bool,
}

impl State {
    fn is_due(&self) -> bool {
        self.is_urgent || self.is_over || self.ops.len() >= GROUP
    }
}

impl Queue {
    pub(super) fn push(&self, op: Op) {
        let mut state = self.lock();
        let (was_empty, was_due) = (state.ops.is_empty(), state.is_due());
        state.is_urgent |= op.is_urgent();
        state.ops.push_back(op);
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

    /// The next group, once it is due; `None` after the last.
    pub(super) fn next(&self) -> Option<Vec<Op>> {
        let mut state = self.lock();
        while state.ops.is_empty() {
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
        // After a close the rest is refused, so it ends a group.
        let close = state.ops.iter().position(|op| matches!(op, Op::Close(_)));
        let count = close.map_or(state.ops.len(), |close| close + 1).min(GROUP);
        let group = state.ops.drain(..count).collect();
        // What is left has waited already.
        state.is_urgent = !state.ops.is_empty();
        Some(group)
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
        f.debug_struct("Queue").field("waiting", &self.lock().ops.len()).finish_non_exhaustive()
    }
}
