//! Blocking work, off the async threads.

use std::{future::pending, panic::resume_unwind};

use tokio::{sync::oneshot, task::spawn_blocking};
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
    let (sender, receiver) = oneshot::channel();
    run(Box::new(move || drop(sender.send(work(&stop))))).await;
    match receiver.await {
        Ok(output) => output,
        // The runtime is shutting down, and drops this future with it.
        Err(_) => pending().await,
    }
}

/// Runs work of one type, whatever its output is: the runtime's code for a task is not small.
async fn run(work: Box<dyn FnOnce() + Send>) {
    if let Err(error) = spawn_blocking(work).await
        && let Ok(panic) = error.try_into_panic()
    {
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests;
