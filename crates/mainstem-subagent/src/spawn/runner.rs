//! Where a child's turn runs.

use std::{fmt, pin::Pin, sync::Arc};

use mainstem_message::Message;
use mainstem_react::{Agent, RunContext, RunOutcome};

/// A turn of a child. It is owned, so that it can move from the tool call that began it to a
/// background task. Dropping it stops the child.
pub(crate) type RunningTurn = Pin<Box<dyn Future<Output = RunOutcome> + Send>>;

/// What runs the turns of a child: an agent of this process, or a stand-in for one that runs
/// elsewhere.
///
/// The fleet starts, waits for, promotes and records a child by what every runner gives:
///
/// * The turn emits into its context, from one `AGENT_START` to one `AGENT_END` with the outcome
///   that the future returns. From these events come the conversation that the roster remembers
///   and the usage that budgets count.
/// * It never fails and never panics; what goes wrong is in the outcome.
/// * It stops soon after its context is cancelled, and closes what is open. Dropping it stops the
///   child as well.
/// * It waits in `settle` after each delta, so that a paused caller holds it back.
/// * It polls `aside` until the turn has ended, and drops it then.
pub(crate) trait Runner: fmt::Debug + Send + Sync {
    /// Starts a turn when the returned future is first polled.
    fn run_turn(&self, turn: Turn) -> RunningTurn;
}

/// What a turn begins with.
pub(crate) struct Turn {
    pub(crate) cx: RunContext,
    /// What was said before.
    pub(crate) history: Vec<Arc<Message>>,
    pub(crate) task: String,
    /// Polled beside the turn.
    pub(crate) aside: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Runner for Agent {
    fn run_turn(&self, turn: Turn) -> RunningTurn {
        let input = vec![Arc::new(Message::user(turn.task))];
        Box::pin(self.run_beside(turn.cx, turn.history, input, turn.aside))
    }
}

#[cfg(test)]
mod tests;
