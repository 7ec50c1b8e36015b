//! Synchronization primitives: those of the standard library, or, compiled with `--cfg shuttle`,
//! those of a model checker that tries many schedules (`cargo xtask models`).

#[cfg(shuttle)]
mod once;

#[cfg(shuttle)]
pub(crate) use self::once::OnceLock;
#[cfg(shuttle)]
pub(crate) use shuttle::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64},
};
#[cfg(not(shuttle))]
pub(crate) use std::sync::{
    Mutex, MutexGuard, OnceLock,
    atomic::{AtomicU32, AtomicU64},
};
