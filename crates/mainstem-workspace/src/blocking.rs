//! File work off the async threads, which ends soon after its call is cancelled.

use mainstem_tool::ToolContext;

use crate::WorkspaceError;

/// Checked between files, and between the blocks of a large one.
#[derive(Clone, Debug)]
pub(crate) struct Stop(mainstem_tool::Stop);

impl Stop {
    /// Fails if the work is cancelled.
    pub(crate) fn check(&self) -> Result<(), WorkspaceError> {
        if self.0.is_set() { Err(WorkspaceError::Cancelled) } else { Ok(()) }
    }
}

/// Runs blocking work: see [`ToolContext::blocking`].
pub(crate) async fn blocking<T: Send + 'static>(
    cx: &ToolContext,
    work: impl FnOnce(&Stop) -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    cx.blocking(move |stop| work(&Stop(stop.clone()))).await
}

#[cfg(test)]
mod tests;
