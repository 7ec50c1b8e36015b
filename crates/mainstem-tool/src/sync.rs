//! Synchronization primitives: those of the standard library, or, compiled with `--cfg shuttle`,
//! those of a model checker that tries many schedules (`cargo xtask models`).

#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic::AtomicBool};
#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic::AtomicBool};
