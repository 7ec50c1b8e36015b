//! A remote agent as a child of a fleet.

use std::sync::Arc;

use mainstem_event::fold::RecordedTurn;
use mainstem_subagent::{ContinuesTurns, Runner, RunningTurn, TurnInput};

use crate::{RemoteAgent, TraceContext, turn};

/// Runs the turns of a child at a [`RemoteAgent`].
///
/// The child's events are in the caller's stream as those of a local one are: numbered by its
/// session's log, tagged with their agents, and lawful. An event that
/// breaks a law ends the turn with an error.
#[derive(Clone, Debug)]
pub struct RemoteRunner {
    pub(crate) agent: Arc<dyn RemoteAgent>,
    pub(crate) name: Arc<str>,
    pub(crate) trace: TraceContext,
}

impl RemoteRunner {
    /// Creates a runner of this agent, with its display name.
    pub fn new(agent: impl RemoteAgent, name: impl Into<Arc<str>>) -> Self {
        Self { agent: Arc::new(agent), name: name.into(), trace: TraceContext::default() }
    }

    /// Sets where the trace of a turn is known.
    #[must_use]
    pub fn with_trace_context(mut self, trace: TraceContext) -> Self {
        self.trace = trace;
        self
    }
}

impl Runner for RemoteRunner {
    fn run_turn(&self, input: TurnInput) -> RunningTurn {
        let cx = input.cx.clone();
        Box::pin(cx.in_span(&self.name, turn::run(self.clone(), input, None)))
    }

    fn continues(&self) -> Option<&dyn ContinuesTurns> {
        self.agent.can_find().then_some(self)
    }
}

impl ContinuesTurns for RemoteRunner {
    fn continue_turn(&self, input: TurnInput, recorded: RecordedTurn) -> RunningTurn {
        let cx = input.cx.clone();
        Box::pin(cx.in_span(&self.name, turn::run(self.clone(), input, Some(recorded))))
    }
}
