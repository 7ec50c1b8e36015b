//! Threads and their synchronization primitives: those of the standard library, or, compiled with
//! `--cfg shuttle`, those of a model checker that tries many schedules (`cargo xtask models`).

#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, atomic::AtomicU64};
#[cfg(all(shuttle, feature = "sqlite"))]
pub(crate) use shuttle::{
    sync::{Condvar, MutexGuard},
    thread,
};
#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, atomic::AtomicU64};
#[cfg(all(not(shuttle), feature = "sqlite"))]
pub(crate) use std::{
    sync::{Condvar, MutexGuard},
    thread,
};

/// Takes the next value from a channel, on a thread that may block.
#[cfg(all(not(shuttle), feature = "sqlite"))]
pub(crate) fn receive<T>(from: &mut tokio::sync::mpsc::Receiver<T>) -> Option<T> {
    from.blocking_recv()
}

#[cfg(all(shuttle, feature = "sqlite"))]
pub(crate) fn receive<T>(from: &mut tokio::sync::mpsc::Receiver<T>) -> Option<T> {
    shuttle::future::block_on(from.recv())
}

/// Returns `true` if so much time has passed since then. In a model, no time passes.
#[cfg(feature = "sqlite")]
pub(crate) fn has_passed(time: std::time::Duration, since: std::time::Instant) -> bool {
    !cfg!(shuttle) && since.elapsed() >= time
}
