//! File work off the async threads, which ends soon after nobody wants it any more.

use mainstem_tool::RunContext;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::WorkspaceError;

/// Whether work is still wanted. Looked at between files, and between the blocks of a large one.
#[derive(Clone, Debug)]
pub(crate) struct Stop(CancellationToken);

impl Stop {
    /// Fails when the work is not wanted any more.
    pub(crate) fn check(&self) -> Result<(), WorkspaceError> {
        if self.0.is_cancelled() { Err(WorkspaceError::Cancelled) } else { Ok(()) }
    }
}

/// Runs work that blocks. A cancel of the run and the drop of this future both set its [`Stop`].
pub(crate) async fn blocking<T: Send + 'static>(
    cx: &RunContext,
    work: impl FnOnce(&Stop) -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    let token = cx.cancellation().child_token();
    let stop = Stop(token.clone());
    let _stops = token.drop_guard();
    spawn_blocking(move || work(&stop)).await.unwrap_or(Err(WorkspaceError::Panicked))
}

#[cfg(test)]
mod tests;
