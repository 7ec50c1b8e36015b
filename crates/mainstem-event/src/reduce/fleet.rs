//! The state of a fleet: the one reducer behind the live tree, snapshots over HTTP, replay and
//! tests.

mod agent;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use mainstem_message::{AgentKey, ConfirmId, RateLimits, ReplyId, SessionId, TaskId, ToolCall, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::agent::{AgentState, ContextFill, Phase, ToolActivity};
use crate::{AgentEvent, EventKind, TaskStatus, Timestamp};

/// The state of a session's fleet after some number of events; a pure fold.
///
/// ```
/// use mainstem_event::FleetState;
///
/// let fleet = FleetState::default();
/// assert_eq!((fleet.seq, fleet.agents.len()), (0, 0));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FleetState {
    /// The last event that went in.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The root session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Every agent, in the order in which they first started; an instance that is sent a further
    /// message keeps its place.
    pub agents: Vec<AgentState>,
    /// Background tasks.
    pub tasks: BTreeMap<TaskId, TaskStatus>,
    /// Questions that no one has answered yet.
    pub confirmations: BTreeMap<ConfirmId, Vec<ToolCall>>,
    /// Tokens of all model calls.
    pub usage: Usage,
    /// What the services of the models still allow, by the name of the model, as they reported
    /// last.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rate_limits: BTreeMap<Arc<str>, RateLimits>,
    /// Whether the session plans: then only tools that change nothing run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plan_mode: bool,
    /// Events that were missed, so that the rest may be incomplete.
    pub missed: u64,
    #[serde(skip)]
    places: Places,
}

/// The index of each agent in the list, which equality ignores.
#[derive(Clone, Debug, Default)]
struct Places(HashMap<Option<AgentKey>, usize>);

impl PartialEq for Places {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl FleetState {
    /// Applies the next event. An event that was applied before is ignored, so replaying an overlap
    /// changes nothing.
    pub fn apply(&mut self, event: &AgentEvent) {
        if event.seq <= self.seq {
            return;
        }
        (self.seq, self.at) = (event.seq, event.at);
        self.session_id.get_or_insert_with(|| event.session_id().clone());
        use EventKind::*;
        match &event.kind {
            Gap { missed, .. } => self.missed += missed,
            TaskUpdated { task_id, to, .. } => _ = self.tasks.insert(task_id.clone(), *to),
            PlanModeChanged { active } => self.plan_mode = *active,
            RequireUserConfirm { confirm_id, tool_calls, .. } => {
                self.confirmations.insert(confirm_id.clone(), tool_calls.clone());
            }
            UserConfirmResult { confirm_id, .. } => _ = self.confirmations.remove(confirm_id),
            ModelCallEnd { usage, .. } => self.usage += usage.unwrap_or_default(),
            // Events of one agent, which change its state.
            AgentStart { .. }
            | AgentResult { .. }
            | AgentEnd { .. }
            | ModelCallStart { .. }
            | RateLimitWait { .. }
            | RateLimitPassed { .. }
            | ModelRetry { .. }
            | ModelFallback { .. }
            | TextBlockStart { .. }
            | TextBlockDelta { .. }
            | TextBlockEnd { .. }
            | ThinkingBlockStart { .. }
            | ThinkingBlockDelta { .. }
            | ThinkingBlockEnd { .. }
            | DataBlockStart { .. }
            | DataBlockDelta { .. }
            | DataBlockEnd { .. }
            | ToolCallStart { .. }
            | ToolCallDelta { .. }
            | ToolCallEnd { .. }
            | ToolResultStart { .. }
            | ToolResultTextDelta { .. }
            | ToolResultDataDelta { .. }
            | ToolResultEnd { .. }
            | RequireExternalExecution { .. }
            | ExternalExecutionResult { .. }
            | AllToolsDenied { .. }
            | HintBlock { .. }
            | ExceedMaxIters { .. }
            | StreamFallback { .. } => {}
            // Events that do not change the fleet's state.
            MessageSent { .. }
            | AgentClosed { .. }
            | StateCheckpoint { .. }
            | RunCancelled { .. }
            | Custom { .. }
            | Unknown { .. } => {}
        }
        if let Some(reply_id) = event.reply_id() {
            let agent = self.agent_of(event, reply_id);
            agent.apply(event);
            let reported = agent.model.clone().zip(event.kind.rate_limits());
            self.rate_limits.extend(reported);
        }
    }

    /// Returns the event's agent, at the place of its first invocation.
    fn agent_of(&mut self, event: &AgentEvent, reply_id: &ReplyId) -> &mut AgentState {
        let key = event.agent_key().cloned();
        let place = self.place_of(&key).unwrap_or_else(|| {
            let source = event.source().cloned();
            let name = event.agent_id().to_owned();
            self.agents.push(AgentState::new(name, source, reply_id.clone(), event.at));
            self.places.0.insert(key, self.agents.len() - 1);
            self.agents.len() - 1
        });
        &mut self.agents[place]
    }

    fn place_of(&mut self, key: &Option<AgentKey>) -> Option<usize> {
        let (places, agents) = (&mut self.places.0, &self.agents);
        let place = places.get(key).copied();
        let is_right = match place {
            Some(place) => agents.get(place).is_some_and(|agent| agent.key() == key.as_ref()),
            None => places.len() == agents.len(),
        };
        if is_right {
            return place;
        }
        // The state was read from JSON, or its list was changed by hand.
        *places = agents.iter().enumerate().map(|(place, agent)| (agent.key().cloned(), place)).collect();
        places.get(key).copied()
    }

    /// Returns the root.
    pub fn root(&self) -> Option<&AgentState> {
        self.agents.iter().find(|agent| agent.source.is_none())
    }

    /// Returns one instance.
    pub fn agent(&self, key: &AgentKey) -> Option<&AgentState> {
        self.agents.iter().find(|agent| agent.key() == Some(key))
    }

    /// Returns the agents that have not ended.
    pub fn running(&self) -> impl Iterator<Item = &AgentState> {
        self.agents.iter().filter(|agent| agent.outcome.is_none())
    }
}

#[cfg(test)]
mod tests;
