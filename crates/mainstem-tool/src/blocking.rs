//! Blocking work, off the async threads.

use std::{future::pending, panic::resume_unwind};

use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

/// Tells blocking work to end. The work must check it now and then, because it can't be ended from
/// outside.
#[derive(Clone, Debug)]
pub struct Stop(CancellationToken);

impl Stop {
    /// Returns `true` if the work was cancelled, or its future was dropped.
    pub fn is_set(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// Runs blocking work on a thread of its own, for code without a
/// [`ToolContext`](crate::ToolContext); see
/// [`ToolContext::blocking`](crate::ToolContext::blocking). A cancel of the token sets the work's
/// [`Stop`].
///
/// # Panics
/// If the work panics, and outside a tokio runtime.
pub async fn blocking<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> T {
    let token = cancel.child_token();
    let stop = Stop(token.clone());
    let _stops = token.drop_guard();
    match spawn_blocking(move || work(&stop)).await {
        Ok(output) => output,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is shutting down, and drops this future with it.
            Err(_) => pending().await,
        },
    }
}

#[cfg(test)]
mod tests;
