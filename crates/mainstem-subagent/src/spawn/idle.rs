//! Ending a child of which nothing is heard any more.

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

use crate::{member::Member, spawn::deadline::Deadline};

/// How many calls of an agent wait for children, tasks or people. Part of its [`Member`].
#[derive(Debug, Default)]
pub(crate) struct Waits(AtomicUsize);

impl Waits {
    /// Returns `true` if a call of the context's agent waits.
    pub(crate) fn is_waiting(cx: &RunContext) -> bool {
        Member::of(cx).is_ok_and(|member| member.waits.0.load(Ordering::Relaxed) > 0)
    }
}

/// An agent that waits for others, which is no silence of its own; until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiting(Option<Arc<Waits>>);

impl Waiting {
    pub(crate) fn of(cx: &RunContext) -> Self {
        let waits = Member::of(cx).ok().map(|member| member.waits.clone());
        if let Some(Waits(waits)) = waits.as_deref() {
            waits.fetch_add(1, Ordering::Relaxed);
        }
        Self(waits)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(Waits(waits)) = self.0.as_deref() {
            waits.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Asks an agent to stop when no event came from it for so long; `Duration::MAX` is for ever. To be
/// polled beside its work, and never over.
pub(crate) async fn watch(cx: &RunContext, most: Duration) {
    if most < Duration::MAX {
        silence(cx, most).await;
        cx.cancellation().cancel(CancelReason::Silence { lasted: most });
    }
    pending().await
}

/// Resolves when no event came for so long. It looks once a slice whether there was one, so that
/// events cost nothing.
async fn silence(cx: &RunContext, most: Duration) {
    let (mut heard, mut deadline) = (cx.last_event(), Deadline::new(most));
    while deadline.pass().await.is_some() {
        if Waits::is_waiting(cx) || cx.last_event() != heard {
            (heard, deadline) = (cx.last_event(), Deadline::new(most));
        }
    }
}
