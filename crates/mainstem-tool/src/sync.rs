//! The primitives at which threads meet: the standard library's, or, compiled with `--cfg shuttle`,
//! those of a model checker that tries many orders of the threads (`cargo xtask models`).

#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic::AtomicBool};
#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic::AtomicBool};
