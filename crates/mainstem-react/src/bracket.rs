//! Exactly one ending for each invocation, even if its future is dropped or panics.

use std::sync::Arc;

use mainstem_event::{CancelReason, EventKind, Outcome, Rollup, Timestamp, fold::RecordedInvocation};
use mainstem_message::{Failure, Message, Role, StopReason};

use crate::{AgentError, RunContext, RunOutcome, facts};

/// The bracket around an invocation: `AGENT_START` when it is opened, `AGENT_END` when it is closed
/// or dropped.
///
/// The loop has one around each invocation of an [`Agent`](crate::Agent). Code that emits the
/// events of an agent that runs elsewhere opens one itself.
#[derive(Debug)]
#[must_use = "dropping it ends the invocation"]
pub struct Bracket {
    cx: RunContext,
    started: Timestamp,
    /// Whether its result is recorded.
    has_result: bool,
    over: bool,
}

impl Bracket {
    /// Begins the invocation of this context, of an agent with this display name.
    pub fn open(cx: &RunContext, name: &Arc<str>, input: Vec<Arc<Message>>) -> Self {
        let parent_tool_call_id = cx.source().and_then(|source| source.parent_tool_call_id.clone());
        let (started, settings) = (cx.now(), facts::settings(cx));
        let (spec_version, spec) = facts::spec(cx);
        cx.emit(
            EventKind::agent_start(name.clone(), Role::Assistant, input)
                .with_parent_tool_call_id(parent_tool_call_id)
                .with_settings(settings)
                .with_spec_version(spec_version)
                .with_spec(spec),
        );
        Self { cx: cx.clone(), started, has_result: false, over: false }
    }

    /// Continues the invocation of a [recorded child](RunContext::recorded_child).
    pub fn recorded(cx: &RunContext, recorded: &RecordedInvocation) -> Self {
        let RecordedInvocation { began: started, has_result, .. } = *recorded;
        Self { cx: cx.clone(), started, has_result, over: false }
    }

    /// Ends the invocation: closes what is open, emits the answer of a success, and `AGENT_END`.
    pub fn close(mut self, result: Result<Outcome, AgentError>) -> RunOutcome {
        let (outcome, error) = match result {
            Ok(outcome) => (outcome, None),
            Err(error) => (error.outcome(), Some(error)),
        };
        let reason = match outcome {
            Outcome::Error => StopReason::Error,
            _ => StopReason::Cancelled,
        };
        let answer = match outcome {
            // The last answer is one of an earlier run then.
            _ if self.cx.purpose().is_some() => None,
            Outcome::Success | Outcome::MaxIterations => {
                self.cx.with_transcript(|transcript| transcript.last_answer().cloned())
            }
            _ => None,
        };
        let usage = self.end(reason, outcome, answer.clone(), error.as_ref().map(Failure::from));
        RunOutcome { outcome, answer, error, usage }
    }

    /// Closes what is open, emits the answer, and ends. Returns the usage of the invocation.
    fn end(
        &mut self,
        reason: StopReason,
        outcome: Outcome,
        answer: Option<Arc<Message>>,
        error: Option<Failure>,
    ) -> Rollup {
        self.over = true;
        let cx = &self.cx;
        cx.close(&reason);
        if let Some(result) = answer.filter(|_| !self.has_result) {
            cx.emit(EventKind::AgentResult { result });
        }
        let duration_ms = cx.now().millis_since(self.started);
        cx.meter().end(cx.meter_above(), |usage| {
            cx.emit(EventKind::agent_end(outcome, usage, duration_ms).with_error(error));
        })
    }
}

impl Drop for Bracket {
    fn drop(&mut self) {
        if !self.over {
            // A cancelled invocation ends with the reason of the cancel.
            let why = self.cx.cancellation().reason().unwrap_or(CancelReason::Dropped);
            self.end(StopReason::Cancelled, why.outcome(), None, Some(Failure::from(&why)));
        }
    }
}
