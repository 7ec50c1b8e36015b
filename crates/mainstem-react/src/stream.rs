//! The owned stream of a run.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::{FusedStream, Stream};
use mainstem_event::{AgentEvent, Cursor, Outcome};
use tokio::task::{coop, unconstrained};

use crate::{AgentError, RunOutcome};

/// A run: polling it drives the agent and all its children and yields their events, in order; it
/// ends with the root's `AGENT_END`.
///
/// It owns the work. While it is not polled, the work waits, down to the model's socket. Dropping
/// it stops the agent, its tools and its children at once; open blocks and calls are closed in the
/// session's log as cancelled.
///
/// ```
/// use mainstem_react::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mainstem_react::tool::ToolSetError> {
/// let model = ScriptedModel::new().agent("main", [Turn::new().text("Hello.")]);
/// let mut run = Agent::builder("main", model).build()?.stream_events("Hi");
/// while let Some(event) = run.next().await {
///     println!("{event}");
/// }
/// assert!(run.outcome().is_some_and(|outcome| outcome.answer.is_some()));
/// # Ok(())
/// # }
/// ```
#[must_use = "a run does nothing unless polled"]
pub struct RunStream {
    // Dropped in this order: the guards of the work still write to the log that the cursor reads.
    work: Option<Pin<Box<dyn Future<Output = RunOutcome> + Send>>>,
    outcome: Option<RunOutcome>,
    cursor: Cursor,
    over: bool,
}

impl RunStream {
    pub(crate) fn new(work: impl Future<Output = RunOutcome> + Send + 'static, cursor: Cursor) -> Self {
        // The work spends none of tokio's budget: a thousand children in one poll would use it up
        // on their first reads. The events do, so that a stream that is always ready lets timers
        // and other tasks run.
        Self { work: Some(Box::pin(unconstrained(work))), outcome: None, cursor, over: false }
    }

    /// Returns how the run ended; `None` while it goes on.
    pub fn outcome(&self) -> Option<&RunOutcome> {
        self.outcome.as_ref()
    }

    /// Reads to the end and returns the outcome. Dropping the future drops the run.
    pub async fn finish(mut self) -> RunOutcome {
        while std::future::poll_fn(|cx| Pin::new(&mut self).poll_next(cx)).await.is_some() {}
        #[expect(
            clippy::expect_used,
            reason = "the stream ends with AGENT_END, which the work emits as its last act"
        )]
        self.outcome.take().expect("a run that is over has an outcome")
    }

    /// Changes the outcome to an error if its ending could not be recorded.
    fn amend(&mut self) {
        let (Some(why), Some(ended)) = (self.cursor.log().failure(), &mut self.outcome) else { return };
        if ended.outcome != Outcome::Error && self.cursor.log().committed() < Some(self.cursor.next_seq() - 1)
        {
            ended.outcome = Outcome::Error;
            ended.error = Some(AgentError::Unrecorded { why: why.clone() });
        }
    }

    /// Returns the next event of the log, after polling the work if needed.
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        loop {
            // Read without a waker: events that the work emits while it is polled here need not
            // wake this task.
            if let Some(event) = self.cursor.try_next() {
                return Poll::Ready(Some(event));
            }
            let Some(work) = &mut self.work else {
                // Its ending may wait for the log's record.
                return if self.cursor.is_at_end() {
                    Poll::Ready(None)
                } else {
                    Pin::new(&mut self.cursor).poll_next(cx)
                };
            };
            match work.as_mut().poll(cx) {
                Poll::Ready(outcome) => (self.outcome, self.work) = (Some(outcome), None),
                Poll::Pending => return Pin::new(&mut self.cursor).poll_next(cx),
            }
        }
    }
}

impl Stream for RunStream {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        if self.over {
            return Poll::Ready(None);
        }
        let budget = ready!(coop::poll_proceed(cx));
        let event = ready!(self.advance(cx));
        budget.made_progress();
        self.over = event.as_ref().is_none_or(|event| event.is_run_end());
        if self.over {
            self.amend();
        }
        Poll::Ready(event)
    }
}

impl FusedStream for RunStream {
    fn is_terminated(&self) -> bool {
        self.over
    }
}

impl fmt::Debug for RunStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream")
            .field("cursor", &self.cursor)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
