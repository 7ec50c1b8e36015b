//! What the writer has done, counted.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use mainstem_journal::Figures;

/// Counts of the writer. They only rise.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Events that were queued.
    queued: AtomicU64,
    /// Events that were committed, or refused.
    done: AtomicU64,
    commits: AtomicU64,
    events: AtomicU64,
    micros: AtomicU64,
    failures: AtomicU64,
}

fn add(to: &AtomicU64, count: u64) {
    to.fetch_add(count, Ordering::Relaxed);
}

impl Counts {
    pub(crate) fn queued(&self) {
        add(&self.queued, 1);
    }

    /// Requests that were queued were served.
    pub(crate) fn done(&self, events: u64) {
        add(&self.done, events);
    }

    pub(crate) fn committed(&self, events: u64, took: Duration) {
        add(&self.commits, 1);
        add(&self.events, events);
        add(&self.micros, u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// A record has failed.
    pub(crate) fn failed(&self) {
        add(&self.failures, 1);
    }

    /// Returns the figures, with what is left of the lease, and the number of connections.
    pub(crate) fn figures(&self, lease: Duration, connections: usize) -> Figures {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut figures = Figures::default();
        // What is done was queued before.
        let done = count(&self.done);
        figures.waiting = count(&self.queued).saturating_sub(done);
        (figures.commits, figures.events) = (count(&self.commits), count(&self.events));
        figures.time = Duration::from_micros(count(&self.micros));
        figures.failures = count(&self.failures);
        (figures.lease, figures.connections) = (Some(lease), connections as u64);
        figures
    }
}
