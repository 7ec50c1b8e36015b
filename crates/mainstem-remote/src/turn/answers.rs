//! What a turn waits for beside its events: decisions of people, results of the caller, and their
//! way to the remote.

use std::{
    future::poll_fn,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use mainstem_event::ConfirmResult;
use mainstem_message::{ConfirmId, ToolCallId, ToolResult};
use mainstem_tool::ToolOutput;
use tokio::sync::oneshot;

use crate::RemoteError;

/// Pending answers. All are polled whenever one is woken, because there are few at a time.
#[derive(Default)]
pub(super) struct Answers(Vec<Answer>);

struct Answer {
    invocation: usize,
    asked: Option<Asked>,
    work: BoxFuture<'static, Result<(), RemoteError>>,
}

/// What a remote asked for, and where the answer goes that is given elsewhere.
pub(super) enum Asked {
    Approval(ConfirmId, oneshot::Sender<Vec<ConfirmResult>>),
    Result(ToolCallId, oneshot::Sender<ToolOutput>),
}

/// Returns the error of an answer that is lost on its way. One that is refused was given elsewhere,
/// or its request is over: the events show what comes of it.
pub(super) fn arrived(sent: Result<(), RemoteError>) -> Result<(), RemoteError> {
    match sent {
        Err(RemoteError::Refused { status: Some(500..), .. } | RemoteError::Unreachable { .. }) => sent,
        Err(error) => {
            tracing::debug!(%error, "a remote agent did not take an answer");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

impl Answers {
    /// Adds one for an invocation: to this request, unless it is a cancel.
    pub(super) fn add(
        &mut self,
        invocation: usize,
        asked: Option<Asked>,
        work: impl Future<Output = Result<(), RemoteError>> + Send + 'static,
    ) {
        self.0.push(Answer { invocation, asked, work: Box::pin(work) });
    }

    /// Ends the wait for the answer to a request that was answered elsewhere.
    pub(super) fn decided_elsewhere(&mut self, request: &ConfirmId, results: Vec<ConfirmResult>) {
        let asked = self.take(|asked| matches!(asked, Asked::Approval(id, _) if id == request));
        if let Some(Asked::Approval(_, decided)) = asked {
            // Refused if it was answered here meanwhile.
            let _ = decided.send(results);
        }
    }

    /// Ends the wait for the result of a call that was run elsewhere.
    pub(super) fn executed_elsewhere(&mut self, result: ToolResult) {
        let asked = self.take(|asked| matches!(asked, Asked::Result(id, _) if *id == result.tool_call_id));
        if let Some(Asked::Result(_, done)) = asked {
            // As above.
            let _ = done.send(ToolOutput::new(result.content).with_state(result.state));
        }
    }

    fn take(&mut self, is_it: impl Fn(&Asked) -> bool) -> Option<Asked> {
        let mut open = self.0.iter_mut();
        open.find(|answer| answer.asked.as_ref().is_some_and(&is_it))?.asked.take()
    }

    /// Drops those of an invocation that ends.
    pub(super) fn withdraw_of(&mut self, invocation: usize) {
        self.0.retain(|answer| answer.invocation != invocation);
    }

    /// Waits until one is sent; without any, it never returns.
    pub(super) async fn next(&mut self) -> Result<(), RemoteError> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RemoteError>> {
        for place in 0..self.0.len() {
            if let Poll::Ready(sent) = self.0[place].work.as_mut().poll(cx) {
                drop(self.0.swap_remove(place));
                return Poll::Ready(sent);
            }
        }
        Poll::Pending
    }
}
