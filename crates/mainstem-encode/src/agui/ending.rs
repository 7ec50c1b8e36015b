//! The last frames of a stream: the run has ended, waits for an answer, or can't be read.

use mainstem_event::{Outcome, Rollup};
use mainstem_message::Failure;
use serde_json::{Value, json};

use super::{
    Agui, in_order,
    wire::{Body, RunOutcome},
};

/// How the root's invocation ended.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) outcome: Outcome,
    pub(super) error: Option<Failure>,
    pub(super) usage: Rollup,
    pub(super) answer: Option<String>,
}

impl Agui {
    /// Ends the stream of a run that waits: with interrupts, or with the calls of the frontend's
    /// tools.
    pub(super) fn finish_paused(&mut self) {
        self.suspend_all(false);
        let Self { out, questions, requested, state, .. } = self;
        out.write(None, Body::StateDelta { delta: &[state.position()] });
        let interrupts = questions.interrupts(requested.children);
        let calls = questions.calls();
        let outcome = match interrupts.is_empty() {
            true => RunOutcome::Success { pending_tool_call_ids: &calls },
            false => RunOutcome::Interrupt { interrupts: &interrupts },
        };
        let body = Body::RunFinished {
            thread_id: &requested.thread_id,
            run_id: &requested.run_id,
            result: None,
            outcome,
            usage: Vec::new(),
        };
        out.write_with(None, json!({ "isPaused": true, "pendingToolCallIds": calls }), body);
        self.is_over = true;
    }

    /// Ends the stream of a run that has ended. Children that go on in the background are left.
    pub(super) fn finish(&mut self) {
        self.suspend_all(true);
        self.is_over = true;
        let Some(ending) = self.ending.take() else {
            let message = "events were lost, among them the end of the run; read the session's events";
            self.error(message, Some("events_lost"), Rollup::default());
            return;
        };
        let Ending { outcome, error, usage, answer } = ending;
        let outcome_on_wire = match outcome {
            Outcome::Success | Outcome::MaxIterations => RunOutcome::Success { pending_tool_call_ids: &[] },
            // Clients before 1.0 refuse the outcome.
            Outcome::Cancelled if self.requested.is_versioned => RunOutcome::Cancelled,
            _ => {
                let error = error.unwrap_or_else(|| Failure::new(outcome.as_str(), "the run has no answer"));
                self.error(&error.message, Some(&error.code), usage);
                return;
            }
        };
        let body = Body::RunFinished {
            thread_id: &self.requested.thread_id,
            run_id: &self.requested.run_id,
            result: answer.as_deref(),
            outcome: outcome_on_wire,
            usage: vec![usage.inclusive.into()],
        };
        self.out.write_with(None, json!({ "outcome": outcome, "usage": usage, "error": error }), body);
    }

    /// Ends a stream that can't be read on; `problem` is JSON of RFC 9457.
    pub(super) fn finish_failed(&mut self, problem: &str) {
        let problem: Value = serde_json::from_str(problem).unwrap_or_default();
        let text = |name: &str| problem.get(name).and_then(Value::as_str);
        self.out.is_muted = false;
        self.is_over = true;
        self.error(text("detail").unwrap_or("the stream can't be read on"), text("code"), Rollup::default());
    }

    fn error(&mut self, message: &str, code: Option<&str>, usage: Rollup) {
        self.out.write(None, Body::RunError { message, code, usage: vec![usage.inclusive.into()] });
    }

    /// Closes everything that is open on the wire, children before their parents.
    fn suspend_all(&mut self, is_detached: bool) {
        let Self { live, out, questions, .. } = self;
        for invocation in in_order(live).into_iter().rev() {
            let source = invocation.source.clone();
            let ids = source.as_ref().map(|source| questions.below(&source.path, invocation.id.as_deref()));
            let metadata = json!({ "source": source, "detached": is_detached });
            invocation.suspend(ids.unwrap_or_default(), metadata, out);
        }
    }
}
