//! A node's lease as the node itself knows it. Pure, apart from its lock.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// When the lease ends, by this machine's clock that only runs forward. The database counts from
/// when it answers, this from when the node asks, so it ends here first.
#[derive(Debug)]
pub(crate) struct Lease {
    lasts: Duration,
    until: Mutex<Instant>,
}

impl Lease {
    /// A lease that was asked for at this time.
    pub(crate) fn new(lasts: Duration, asked_at: Instant) -> Self {
        Self { lasts, until: Mutex::new(asked_at + lasts) }
    }

    pub(crate) fn lasts(&self) -> Duration {
        self.lasts
    }

    /// How often it is renewed: three renewals may fail.
    pub(crate) fn interval(&self) -> Duration {
        self.lasts / 4
    }

    pub(crate) fn renewed(&self, asked_at: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = asked_at + self.lasts;
    }

    pub(crate) fn until(&self) -> Instant {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how long it still lasts.
    pub(crate) fn left(&self) -> Duration {
        self.until().saturating_duration_since(Instant::now())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}
