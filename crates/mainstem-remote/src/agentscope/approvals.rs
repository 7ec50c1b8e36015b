//! The calls of a task that wait for an approval.
//!
//! The calls of one request are answered in one `/resume`: AgentScope's server denies those of its
//! request that an answer does not name.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use mainstem_event::Decision;
use mainstem_message::{ConfirmId, ToolCall, ToolCallId};

/// The calls that wait, shared by what reads a task and what steers it.
#[derive(Debug, Default)]
pub(super) struct Approvals(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How many requests an earlier process may have made.
    before: usize,
    /// Those that were asked about. None is asked about twice: a status may be older than an
    /// answer.
    asked: HashSet<ToolCallId>,
    requests: Vec<Vec<Pending>>,
}

#[derive(Debug)]
struct Pending {
    id: ConfirmId,
    call: ToolCall,
    decision: Option<Decision>,
}

impl Approvals {
    /// Returns the calls of a task about which an earlier process has made at most this many
    /// requests.
    pub(super) fn after(before: usize) -> Self {
        Self(Mutex::new(State { before, ..State::default() }))
    }

    /// Adds a request about these calls, each with an id of its own. Calls that were asked about
    /// before are left out: a server repeats its requests.
    pub(super) fn ask(&self, calls: Vec<ToolCall>) -> Vec<(ConfirmId, ToolCall)> {
        let mut state = self.state();
        let mut asked = Vec::new();
        for call in calls {
            if state.asked.insert(call.id.clone()) {
                let number = state.before + state.asked.len();
                asked.push((ConfirmId::from_lossy(format!("confirm-{number}")), call));
            }
        }
        let pending = |(id, call): &(ConfirmId, ToolCall)| Pending {
            id: id.clone(),
            call: call.clone(),
            decision: None,
        };
        if !asked.is_empty() {
            state.requests.push(asked.iter().map(pending).collect());
        }
        asked
    }

    /// Takes a decision; returns those of its request once all are made.
    pub(super) fn decide(&self, id: &ConfirmId, decision: Decision) -> Option<Vec<(ToolCallId, Decision)>> {
        let mut state = self.state();
        let place = state.requests.iter().position(|request| request.iter().any(|one| one.id == *id))?;
        for one in state.requests[place].iter_mut().filter(|one| one.id == *id) {
            one.decision = Some(decision.clone());
        }
        let is_complete = state.requests[place].iter().all(|one| one.decision.is_some());
        let complete = is_complete.then(|| state.requests.remove(place));
        complete
            .map(|request| request.into_iter().filter_map(|one| Some((one.call.id, one.decision?))).collect())
    }

    /// Forgets a request with one of these calls, which was answered elsewhere; returns its ids and
    /// calls.
    pub(super) fn withdraw(&self, calls: &[ToolCallId]) -> Vec<(ConfirmId, ToolCall)> {
        let mut state = self.state();
        let is_answered = |request: &Vec<Pending>| request.iter().any(|one| calls.contains(&one.call.id));
        let (answered, open) = std::mem::take(&mut state.requests).into_iter().partition(is_answered);
        state.requests = open;
        let answered: Vec<Vec<Pending>> = answered;
        answered.into_iter().flatten().map(|one| (one.id, one.call)).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
