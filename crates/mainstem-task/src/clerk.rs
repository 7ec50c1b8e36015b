//! What an executor owes those who share its store: to say that it is alive, and to look what they
//! want of its tasks.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use mainstem_event::{CancelReason, Timestamp};
use tokio::time::sleep;

use crate::{
    TaskError, TaskFilter,
    lease::{LEASE, RENEW},
    set::Inner,
    sync::spawn,
};

/// How often the wishes of others are looked at: a cancel is noticed within a second.
const LOOK: Duration = Duration::from_millis(500);

/// Takes the lease, and starts the clerk that renews it while there are tasks and then releases it.
pub(crate) async fn start(inner: &Arc<Inner>) -> Result<(), TaskError> {
    // Held until the lease is there: nobody's task is recorded before.
    let mut has_clerk = inner.has_clerk.lock().await;
    if !*has_clerk {
        let until = renew(inner).await?;
        spawn(&inner.tracker, keep(inner.clone(), until));
        *has_clerk = true;
    }
    Ok(())
}

async fn keep(inner: Arc<Inner>, mut until: Timestamp) {
    loop {
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            () = sleep(LOOK) => {}
        }
        {
            let mut has_clerk = inner.has_clerk.lock().await;
            if inner.live.is_empty() {
                *has_clerk = false;
                release(&inner).await;
                return;
            }
        }
        if is_due(until, inner.now()) {
            match renew(&inner).await {
                Ok(renewed) => until = renewed,
                Err(error) => tracing::error!(%error, "the lease could not be renewed"),
            }
        }
        if let Err(error) = look(&inner).await {
            tracing::error!(%error, "can't see what is wanted of tasks");
        }
    }
}

/// Releases the lease.
pub(crate) async fn release(inner: &Inner) {
    if let Err(error) = inner.store.release(&inner.executor).await {
        tracing::warn!(%error, "the lease stays until it runs out");
    }
}

async fn renew(inner: &Inner) -> Result<Timestamp, TaskError> {
    let until = Timestamp::from_micros(inner.now().as_micros().saturating_add(micros(LEASE)));
    inner.store.renew(&inner.executor, until).await?;
    Ok(until)
}

/// Whether a lease is to be renewed: a part of it is over, or the clock by which others judge it
/// was set ahead or back.
fn is_due(until: Timestamp, now: Timestamp) -> bool {
    let left = until.as_micros().saturating_sub(now.as_micros());
    left <= micros(LEASE - RENEW) || left > micros(LEASE)
}

fn micros(time: Duration) -> u64 {
    time.as_micros().try_into().unwrap_or(u64::MAX)
}

/// Stops what somebody wants stopped.
async fn look(inner: &Inner) -> Result<(), TaskError> {
    let parents: BTreeSet<_> = inner.live.iter().map(|live| live.parent.clone()).collect();
    for parent in parents {
        for record in inner.store.list(&TaskFilter::of_parent(parent)).await? {
            if let Some(request) = record.cancel
                && let Some(live) = inner.live.get(&record.id)
            {
                live.cancel.cancel(CancelReason::Task { task: record.id, by: request.by.into() });
            }
        }
    }
    Ok(())
}
