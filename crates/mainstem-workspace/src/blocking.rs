//! File work off the async threads, which ends soon after nobody wants it any more.

use mainstem_tool::ToolContext;

use crate::WorkspaceError;

/// Whether work is still wanted. Looked at between files, and between the blocks of a large one.
#[derive(Clone, Debug)]
pub(crate) struct Stop(mainstem_tool::Stop);

impl Stop {
    /// Fails when the work is not wanted any more.
    pub(crate) fn check(&self) -> Result<(), WorkspaceError> {
        if self.0.is_set() { Err(WorkspaceError::Cancelled) } else { Ok(()) }
    }
}

/// Runs work that blocks: see [`ToolContext::blocking`].
pub(crate) async fn blocking<T: Send + 'static>(
    cx: &ToolContext,
    work: impl FnOnce(&Stop) -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    cx.blocking(move |stop| work(&Stop(stop.clone()))).await
}

#[cfg(test)]
mod tests;
