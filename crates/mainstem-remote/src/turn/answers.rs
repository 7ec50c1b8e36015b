//! What a turn waits for beside its events: decisions of people, results of the caller, and their
//! way to the remote.

use std::{
    future::poll_fn,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use mainstem_event::ConfirmResult;
use mainstem_message::ConfirmId;
use tokio::sync::oneshot;

/// Pending answers. All are polled whenever one is woken, because there are few at a time.
#[derive(Default)]
pub(super) struct Answers(Vec<Answer>);

struct Answer {
    invocation: usize,
    request: Option<OpenRequest>,
    work: BoxFuture<'static, ()>,
}

/// A request for approval, and where the answer goes that is given elsewhere.
type OpenRequest = (ConfirmId, oneshot::Sender<Vec<ConfirmResult>>);

impl Answers {
    /// Adds one for an invocation, to this request for approval if it is one.
    pub(super) fn add(
        &mut self,
        invocation: usize,
        request: Option<OpenRequest>,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        self.0.push(Answer { invocation, request, work: Box::pin(work) });
    }

    /// Ends the wait for the answer to a request that was answered elsewhere.
    pub(super) fn decided_elsewhere(&mut self, request: &ConfirmId, results: Vec<ConfirmResult>) {
        let mut open = self.0.iter_mut();
        let open = open.find(|answer| answer.request.as_ref().is_some_and(|(id, _)| id == request));
        if let Some((_, decided)) = open.and_then(|answer| answer.request.take()) {
            // Refused if it was answered here meanwhile.
            let _ = decided.send(results);
        }
    }

    /// Drops those of an invocation that ends.
    pub(super) fn withdraw_of(&mut self, invocation: usize) {
        self.0.retain(|answer| answer.invocation != invocation);
    }

    /// Waits until one is made; without any, it never returns.
    pub(super) async fn next(&mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let made = self.0.iter_mut().position(|answer| answer.work.as_mut().poll(cx).is_ready());
        match made {
            Some(place) => {
                drop(self.0.swap_remove(place));
                Poll::Ready(())
            }
            None => Poll::Pending,
        }
    }
}
