//! Renews the executor's lease, and reads the cancel requests that other processes record.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use mainstem_event::{CancelReason, Timestamp};
use tokio::time::sleep;

use crate::{
    TaskError, TaskFilter,
    lease::{LEASE_DURATION, RENEWAL_INTERVAL},
    set::Inner,
    sync::spawn,
};

/// How often cancel requests of other processes are read.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Takes the lease, and spawns a task that renews it while tasks run and then releases it, unless
/// that task is running.
pub(crate) async fn ensure_started(inner: &Arc<Inner>) -> Result<(), TaskError> {
    // Held until the lease is taken, so that no task is recorded before.
    let mut is_renewing = inner.is_renewing.lock().await;
    if !*is_renewing {
        let until = renew(inner).await?;
        spawn(&inner.tracker, run(inner.clone(), until));
        *is_renewing = true;
    }
    Ok(())
}

async fn run(inner: Arc<Inner>, mut until: Timestamp) {
    loop {
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            () = sleep(CANCEL_POLL_INTERVAL) => {}
        }
        {
            let mut is_renewing = inner.is_renewing.lock().await;
            if inner.live.is_empty() {
                *is_renewing = false;
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
        if let Err(error) = apply_cancel_requests(&inner).await {
            tracing::error!(%error, "can't read the cancel requests of tasks");
        }
    }
}

/// Releases the lease.
pub(crate) async fn release(inner: &Inner) {
    if let Err(error) = inner.store.release(&inner.executor).await {
        tracing::warn!(%error, "can't release the lease; it expires by itself");
    }
}

async fn renew(inner: &Inner) -> Result<Timestamp, TaskError> {
    let until = Timestamp::from_micros(inner.now().as_micros().saturating_add(micros(LEASE_DURATION)));
    inner.store.renew(&inner.executor, until).await?;
    Ok(until)
}

/// Returns `true` if a lease must be renewed: the renewal interval has passed, or the clock by
/// which other processes judge it was set forward or back.
fn is_due(until: Timestamp, now: Timestamp) -> bool {
    let left = until.as_micros().saturating_sub(now.as_micros());
    left <= micros(LEASE_DURATION - RENEWAL_INTERVAL) || left > micros(LEASE_DURATION)
}

fn micros(time: Duration) -> u64 {
    time.as_micros().try_into().unwrap_or(u64::MAX)
}

/// Cancels the tasks whose record has a cancel request.
async fn apply_cancel_requests(inner: &Inner) -> Result<(), TaskError> {
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
