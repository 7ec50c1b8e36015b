//! Ends a child that is silent for too long.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mainstem_event::CancelReason;
use mainstem_react::RunContext;

use crate::spawn::deadline::Deadline;

/// The number of an agent's calls that wait for children, tasks or approvals.
#[derive(Debug, Default)]
pub(crate) struct Waits(AtomicUsize);

impl Waits {
    /// Returns `true` if a call of the agent waits.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// A call that waits, until it is dropped. Its agent is not silent meanwhile.
#[derive(Debug)]
#[must_use = "dropping it ends the wait"]
pub struct Waiting(Arc<Waits>);

impl Waiting {
    pub(crate) fn new(waits: &Arc<Waits>) -> Self {
        waits.0.fetch_add(1, Ordering::Relaxed);
        Self(waits.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
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
    let (mut heard, mut deadline) = (cx.last_event(), Deadline::new(most));
    while deadline.pass().await.is_some() {
        if waits.is_waiting() || cx.last_event() != heard {
            (heard, deadline) = (cx.last_event(), Deadline::new(most));
        }
    }
}
