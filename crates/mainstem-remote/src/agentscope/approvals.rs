//! The calls of a task that wait for an approval.
//!
//! The calls of one request are answered in one `/resume`: AgentScope's server denies those of its
//! request that an answer does not name.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use mainstem_encode::agent_protocol::Verdict;
use mainstem_event::Decision;
use mainstem_message::{ConfirmId, ToolCall, ToolCallId};

const NOT_EDITABLE: &str = "the arguments of a call of a remote agent can't be edited";

/// The calls that wait, shared by what reads a task and what steers it.
#[derive(Debug, Default)]
pub(super) struct Approvals(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Those that were asked about. None is asked about twice: a status may be older than an
    /// answer.
    asked: HashSet<ToolCallId>,
    requests: Vec<Vec<Pending>>,
}

#[derive(Debug)]
struct Pending {
    id: ConfirmId,
    call: ToolCallId,
    verdict: Option<Verdict>,
}

impl Approvals {
    /// Adds a request about these calls, each with an id of its own. Calls that were asked about
    /// before are left out: a server repeats its requests.
    pub(super) fn ask(&self, calls: Vec<ToolCall>) -> Vec<(ConfirmId, ToolCall)> {
        let mut state = self.state();
        let mut asked = Vec::new();
        for call in calls {
            if state.asked.insert(call.id.clone()) {
                asked.push((ConfirmId::from_lossy(format!("confirm-{}", state.asked.len())), call));
            }
        }
        let pending = |(id, call): &(ConfirmId, ToolCall)| Pending {
            id: id.clone(),
            call: call.id.clone(),
            verdict: None,
        };
        if !asked.is_empty() {
            state.requests.push(asked.iter().map(pending).collect());
        }
        asked
    }

    /// Takes a decision; returns those of its request once all are made.
    pub(super) fn decide(&self, id: &ConfirmId, decision: Decision) -> Option<Vec<Verdict>> {
        let mut state = self.state();
        let place = state.requests.iter().position(|request| request.iter().any(|one| one.id == *id))?;
        for one in state.requests[place].iter_mut().filter(|one| one.id == *id) {
            one.verdict = Some(verdict(&one.call, decision.clone()));
        }
        let is_complete = state.requests[place].iter().all(|one| one.verdict.is_some());
        let complete = is_complete.then(|| state.requests.remove(place));
        complete.map(|request| request.into_iter().filter_map(|one| one.verdict).collect())
    }

    /// Forgets a request with one of these calls, which was answered elsewhere; returns the ids.
    pub(super) fn withdraw(&self, calls: &[ToolCallId]) -> Vec<ConfirmId> {
        let mut state = self.state();
        let is_answered = |request: &Vec<Pending>| request.iter().any(|one| calls.contains(&one.call));
        let (answered, open) = std::mem::take(&mut state.requests).into_iter().partition(is_answered);
        state.requests = open;
        let answered: Vec<Vec<Pending>> = answered;
        answered.into_iter().flatten().map(|one| one.id).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn verdict(call: &ToolCallId, decision: Decision) -> Verdict {
    let (approved, reason) = match decision {
        Decision::Allow => (true, None),
        Decision::AllowWith(_) => (false, Some(NOT_EDITABLE.to_owned())),
        Decision::Deny(reason) => (false, Some(reason)),
    };
    Verdict { tool_call_id: Some(call.as_str().to_owned()), approved, reason }
}
