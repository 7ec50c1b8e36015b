//! How far a session is recorded: what its writer and its record share.

use std::{
    sync::{Arc, OnceLock, PoisonError, atomic::Ordering},
    task::Waker,
};

use crate::sync::{AtomicU64, Mutex};

/// How far the events of an open session are committed, and why no more will be. The writer sets
/// it; the session's [`Record`](mainstem_event::Record) returns it.
#[derive(Debug)]
pub struct Progress {
    committed: AtomicU64,
    failure: OnceLock<Arc<str>>,
    waker: Mutex<Option<Waker>>,
}

impl Progress {
    /// Creates the progress of a session that was opened when so many events were committed.
    pub fn new(committed: u64) -> Self {
        Self { committed: AtomicU64::new(committed), failure: OnceLock::new(), waker: Mutex::default() }
    }

    /// Returns the number up to which all events are committed.
    pub fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    /// Returns why the record has failed.
    pub fn failure(&self) -> Option<&Arc<str>> {
        self.failure.get()
    }

    /// Sets the waker that a commit and a failure wake.
    pub fn watch(&self, waker: Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker);
    }

    /// Sets the number up to which all events are committed, and wakes. The waker may drop the
    /// record within.
    pub fn commit(&self, seq: u64) {
        self.committed.store(seq, Ordering::Release);
        self.wake();
    }

    /// Sets the failure, unless there is one, and wakes.
    pub fn fail(&self, why: impl Into<Arc<str>>) {
        if self.failure.set(why.into()).is_ok() {
            self.wake();
        }
    }

    fn wake(&self) {
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        waker.into_iter().for_each(Waker::wake);
    }
}
