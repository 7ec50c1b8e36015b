//! Work that blocks, off the async threads.

use std::{future::pending, panic::resume_unwind};

use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::RunContext;

/// Whether work that blocks is not wanted any more. Nothing ends it from outside, so it looks now and then.
#[derive(Clone, Debug)]
pub struct Stop(CancellationToken);

impl Stop {
    /// Whether the run was asked to stop, or nobody waits for the result any more.
    pub fn is_set(&self) -> bool {
        self.0.is_cancelled()
    }
}

impl RunContext {
    /// Runs work that blocks (files, long computations) off the async threads, where it holds nobody up; gives what it gives. It can't be
    /// ended from outside: both a cancel of the invocation and a drop of this future set its [`Stop`], and it shall end soon after.
    ///
    /// ```
    /// use mainstem_tool::{ToolError, tool_fn};
    ///
    /// let count = tool_fn("count", "Count to a number", |cx, most: u64| async move {
    ///     let counted = cx.blocking(move |stop| (0..most).take_while(|_| !stop.is_set()).count());
    ///     Ok::<_, ToolError>(counted.await.to_string())
    /// });
    /// # let _ = count;
    /// ```
    ///
    /// # Panics
    /// As the work does; in a tool call that is an error result. Outside a tokio runtime.
    pub async fn blocking<T: Send + 'static>(&self, work: impl FnOnce(&Stop) -> T + Send + 'static) -> T {
        let token = self.cancellation().child_token();
        let stop = Stop(token.clone());
        let _stops = token.drop_guard();
        match spawn_blocking(move || work(&stop)).await {
            Ok(output) => output,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime is being shut down, and whoever waits here with it.
                Err(_) => pending().await,
            },
        }
    }
}

#[cfg(test)]
mod tests;
