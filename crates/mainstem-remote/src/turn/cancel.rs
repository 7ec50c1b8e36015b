//! Stops a turn at the remote when this side no longer waits for it.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use mainstem_event::CancelReason;
use mainstem_react::RunContext;
use mainstem_subagent::Fleet;
use tokio::time::timeout;

use crate::{BegunTurn, RemoteControl, RemoteError};

/// How long a request to stop may take once this side has stopped waiting.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// Logs an answer that did not arrive. The turn goes on: its events show what comes of it.
pub(super) fn report(result: Result<(), RemoteError>) {
    if let Err(error) = result {
        tracing::debug!(%error, "a remote agent did not take an answer");
    }
}

pub(super) fn reason(cx: &RunContext) -> CancelReason {
    cx.cancellation().reason().unwrap_or(CancelReason::Dropped)
}

/// Returns `false` if the turn is a background task that another process has taken over: only that
/// process stops the turn at the remote.
pub(super) async fn is_executor(cx: &RunContext) -> bool {
    let (Some(tasks), Some(task)) = (Fleet::task_set(cx), cx.sink().task()) else { return true };
    tasks.is_executor_of(task).await.unwrap_or_else(|error| {
        tracing::warn!(%task, %error, "can't read which process executes a task; its turn is stopped");
        true
    })
}

/// A request to begin a turn. If it is dropped on its way, it is driven to its end elsewhere, and
/// the turn that it has begun is stopped.
pub(super) struct Beginning<'a> {
    begun: Option<BoxFuture<'static, Result<BegunTurn, RemoteError>>>,
    cx: &'a RunContext,
}

impl<'a> Beginning<'a> {
    pub(super) fn new(
        cx: &'a RunContext,
        begun: impl Future<Output = Result<BegunTurn, RemoteError>> + Send + 'static,
    ) -> Self {
        Self { begun: Some(Box::pin(begun)), cx }
    }

    pub(super) async fn wait(&mut self) -> Result<BegunTurn, RemoteError> {
        let begun = match &mut self.begun {
            Some(begun) => begun.await,
            None => Err(RemoteError::Ended),
        };
        self.begun = None;
        begun
    }
}

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.take() {
            let reason = reason(self.cx);
            cancel_later(self.cx, async move { begun.await?.control.cancel(&reason).await });
        }
    }
}

/// Lets the session's task set cancel a turn at the remote, because this side stops waiting. A turn
/// that is left to another process goes on.
fn cancel_later(cx: &RunContext, cancel: impl Future<Output = Result<(), RemoteError>> + Send + 'static) {
    if cx.sink().is_left() {
        return;
    }
    let Some(tasks) = Fleet::task_set(cx) else { return };
    let cx = cx.clone();
    tasks.drive(async move {
        if !is_executor(&cx).await {
            return;
        }
        let cancelled = timeout(CANCEL_TIMEOUT, cancel).await;
        report(cancelled.unwrap_or_else(|_| Err(RemoteError::unreachable("no answer to a cancel"))));
    });
}

/// Asks the remote to stop when this side drops the turn before its end.
pub(super) struct CancelOnDrop<'a> {
    pub(super) control: Option<Arc<dyn RemoteControl>>,
    pub(super) cx: &'a RunContext,
}

impl CancelOnDrop<'_> {
    pub(super) fn disarm(mut self) {
        self.control = None;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(control) = self.control.take() {
            let reason = reason(self.cx);
            cancel_later(self.cx, async move { control.cancel(&reason).await });
        }
    }
}
