//! A cell that is set once. Each use is a point at which the model checker may switch threads;
//! shuttle lacks such a cell.

use std::sync;

use shuttle::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug)]
pub(crate) struct OnceLock<T> {
    cell: sync::OnceLock<T>,
    /// A point at which the model checker can switch threads; the value is unused.
    point: AtomicBool,
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> Self {
        Self { cell: sync::OnceLock::new(), point: AtomicBool::new(false) }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.point.load(Ordering::SeqCst);
        self.cell.get()
    }

    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        self.point.load(Ordering::SeqCst);
        self.cell.set(value)
    }

    pub(crate) fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        self.point.load(Ordering::SeqCst);
        self.cell.get_or_init(init)
    }
}
