//! A remote agent as a child of a fleet.

use std::sync::Arc;

use mainstem_subagent::{Runner, RunningTurn, TurnInput};

use crate::{RemoteAgent, turn};

/// Runs the turns of a child at a [`RemoteAgent`].
///
/// The child's events are in the caller's stream as those of a local one are: numbered by its
/// session's log, tagged with their agents, and lawful. An event that
/// breaks a law ends the turn with an error.
#[derive(Clone, Debug)]
pub struct RemoteRunner {
    agent: Arc<dyn RemoteAgent>,
    name: Arc<str>,
}

impl RemoteRunner {
    /// Creates a runner of this agent, with its display name.
    pub fn new(agent: impl RemoteAgent, name: impl Into<Arc<str>>) -> Self {
        Self { agent: Arc::new(agent), name: name.into() }
    }
}

impl Runner for RemoteRunner {
    fn run_turn(&self, input: TurnInput) -> RunningTurn {
        let cx = input.cx.clone();
        Box::pin(cx.in_span(&self.name, turn::run(self.agent.clone(), self.name.clone(), input)))
    }
}
