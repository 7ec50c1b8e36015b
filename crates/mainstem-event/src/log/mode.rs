//! Whether a subtree of agents runs in the foreground or in a background task.

use std::{fmt, sync::Arc};

use mainstem_message::TaskId;

use super::sync::OnceLock;

/// Whether a subtree runs in the foreground, where producers wait for the caller, or in the
/// background, where they do not.
///
/// Each subtree that can move on its own has a cell, which points to the cell above it.
#[derive(Clone, Default)]
pub(crate) struct Mode(Arc<Cell>);

#[derive(Default)]
struct Cell {
    task: OnceLock<TaskId>,
    /// Set when another process continues the subtree.
    left: OnceLock<()>,
    above: Option<Mode>,
}

impl Mode {
    /// Returns the mode of foreground work.
    pub(crate) fn foreground() -> Self {
        Self::default()
    }

    /// Returns a new cell below this one.
    #[must_use]
    pub(crate) fn below(&self) -> Self {
        Self(Arc::new(Cell { task: OnceLock::new(), left: OnceLock::new(), above: Some(self.clone()) }))
    }

    /// Moves the subtree to a background task for good; returns `false` if it is one already.
    pub(crate) fn move_to(&self, task: TaskId) -> bool {
        self.0.task.set(task).is_ok()
    }

    /// Leaves the subtree to another process, for good.
    pub(crate) fn leave(&self) {
        let _ = self.0.left.set(());
    }

    /// Returns `true` if another process continues the subtree.
    pub(crate) fn is_left(&self) -> bool {
        self.0.left.get().is_some() || self.0.above.as_ref().is_some_and(Self::is_left)
    }

    /// Returns the background task that the subtree belongs to.
    pub(crate) fn task(&self) -> Option<&TaskId> {
        self.0.task.get().or_else(|| self.0.above.as_ref()?.task())
    }
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mode").field(&self.task()).finish()
    }
}
