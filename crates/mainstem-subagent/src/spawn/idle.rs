//! Ends a child that is silent for too long.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use mainstem_event::CancelReason;
use mainstem_react::RunContext;

use crate::spawn::deadline::Deadline;

/// Why an agent without events is not silent.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// The number of its calls that wait for children, tasks or approvals.
    calls: AtomicUsize,
    /// The number of signs of agents below it that run elsewhere.
    heard: AtomicU64,
}

impl Waits {
    /// Returns `true` if a call of the agent waits.
    pub(crate) fn is_waiting(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0
    }

    /// Notes an event of an agent below that runs elsewhere.
    pub(crate) fn hear(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }
}

/// A call that waits, until it is dropped. Its agent is not silent meanwhile.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<Waits>);

impl Waiting {
    pub(crate) fn new(waits: &Arc<Waits>) -> Self {
        waits.calls.fetch_add(1, Ordering::Relaxed);
        Self(waits.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Asks an agent to stop when it has emitted no event for `most`; `Duration::MAX` turns this off.
/// The future never completes; poll it beside the agent's turn.
pub(crate) async fn watch(cx: &RunContext, waits: &Waits, most: Duration) {
    if most < Duration::MAX {
        silence(cx, waits, most).await;
        cx.cancellation().cancel(CancelReason::Silence { lasted: most });
    }
    pending().await
}

/// Waits until there was no event for `most`. It checks once a slice, so that events cost nothing.
async fn silence(cx: &RunContext, waits: &Waits, most: Duration) {
    let now = || (cx.last_event(), waits.heard());
    let (mut heard, mut deadline) = (now(), Deadline::new(most));
    while deadline.pass().await.is_some() {
        if waits.is_waiting() || now() != heard {
            (heard, deadline) = (now(), Deadline::new(most));
        }
    }
}
