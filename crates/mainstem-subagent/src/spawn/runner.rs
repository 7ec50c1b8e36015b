//! Runs the turns of children.

use std::{fmt, pin::Pin, sync::Arc};

use mainstem_message::Message;
use mainstem_react::{Agent, RunContext, RunOutcome};

/// A running turn of a child. It is owned, so that it can move from the tool call that began it to
/// a background task. Dropping it stops the child.
pub(crate) type RunningTurn = Pin<Box<dyn Future<Output = RunOutcome> + Send>>;

/// Runs the turns of a child: an agent of this process, or a proxy of a remote agent.
///
/// The fleet starts, waits for, promotes and records children on the strength of what a runner
/// guarantees:
///
/// * The turn emits into its context, from one `AGENT_START` to one `AGENT_END` with the outcome
///   that the future returns. The roster's conversations and the budgets' usage are folds of these
///   events.
/// * Errors are in the outcome; the future does not panic.
/// * It stops soon after its context is cancelled, and closes what is open. Dropping it stops the
///   child as well.
/// * It awaits `settle` after each delta, for backpressure.
/// * It polls `watchdog` until the turn has ended, then drops it.
pub(crate) trait Runner: fmt::Debug + Send + Sync {
    /// Starts a turn when the returned future is first polled.
    fn run_turn(&self, input: TurnInput) -> RunningTurn;
}

/// The input of a turn.
pub(crate) struct TurnInput {
    pub(crate) cx: RunContext,
    /// The messages of earlier turns.
    pub(crate) history: Vec<Arc<Message>>,
    pub(crate) task: String,
    /// Polled beside the turn; cancels it when it has been silent for too long.
    pub(crate) watchdog: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Runner for Agent {
    fn run_turn(&self, input: TurnInput) -> RunningTurn {
        let message = vec![Arc::new(Message::user(input.task))];
        Box::pin(self.run_beside(input.cx, input.history, message, input.watchdog))
    }
}

#[cfg(test)]
mod tests;
