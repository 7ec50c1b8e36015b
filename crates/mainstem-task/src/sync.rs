//! Tasks of the runtime and their synchronization primitives: those of tokio and the standard
//! library, or, compiled with `--cfg shuttle`, those of a model checker that tries many schedules
//! (`cargo xtask models`).

use tokio_util::task::TaskTracker;

#[cfg(not(shuttle))]
pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize};
#[cfg(not(shuttle))]
pub(crate) use tokio::task::AbortHandle;

#[cfg(shuttle)]
pub(crate) use shuttle::{
    future::AbortHandle,
    sync::atomic::{AtomicU64, AtomicUsize},
};

/// Spawns a task that the tracker tracks.
#[cfg(not(shuttle))]
pub(crate) fn spawn(tracker: &TaskTracker, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
    tracker.spawn(work).abort_handle()
}

#[cfg(shuttle)]
pub(crate) fn spawn(tracker: &TaskTracker, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
    shuttle::future::spawn(tracker.track_future(work)).abort_handle()
}
