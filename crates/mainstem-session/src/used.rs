//! What a session has used, as its events tell: what its budgets go on from after a restart.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use mainstem_event::FleetState;
use mainstem_message::{AgentKey, SessionId, Usage};
use mainstem_policy::{Cost, Prices, Spend};
use serde::{Deserialize, Serialize};

/// The usage of a part of a session. A model call without a recorded usage does not count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Used {
    /// Tokens by model, because each has its price.
    models: BTreeMap<Arc<str>, Usage>,
    spawns: u64,
    /// Of roots, in milliseconds.
    time_ms: u64,
}

impl Used {
    /// A model was asked.
    pub(crate) fn call(&mut self, model: &Arc<str>, usage: Usage) {
        *self.models.entry(model.clone()).or_default() += usage;
    }

    /// A child was spawned.
    pub(crate) fn spawn(&mut self) {
        self.spawns += 1;
    }

    /// A root has ended.
    pub(crate) fn ran(&mut self, duration_ms: u64) {
        self.time_ms = self.time_ms.saturating_add(duration_ms);
    }

    /// Returns tokens, cost and children. A model without a price counts as free; a cost budget
    /// refuses its next call.
    pub(crate) fn spend(&self, prices: &Prices) -> Spend {
        let cost = |(model, usage): (&Arc<str>, &Usage)| prices.price(model).map(|price| price.of(usage));
        let mut spend = Spend::default();
        spend.tokens = self.models.values().map(Usage::total_tokens).fold(0, u64::saturating_add);
        spend.cost = self.models.iter().filter_map(cost).fold(Cost::ZERO, |sum, cost| sum + cost);
        spend.spawns = self.spawns;
        spend
    }

    /// For how long its roots ran.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_millis(self.time_ms)
    }
}

/// The tokens of each child, with all below it.
pub(crate) fn by_child(fleet: &FleetState) -> HashMap<AgentKey, u64> {
    let sources = || fleet.agents.iter().filter_map(|agent| Some((agent.source.as_ref()?, &agent.usage)));
    let parents: HashMap<&SessionId, &SessionId> =
        sources().map(|(source, _)| (&source.session_id, &source.parent_session_id)).collect();
    let keys: HashMap<&SessionId, &AgentKey> =
        sources().map(|(source, _)| (&source.session_id, &source.agent_key)).collect();
    let mut sums = HashMap::new();
    for (source, usage) in sources() {
        let line = std::iter::successors(Some(&source.session_id), |session| parents.get(*session).copied());
        for key in line.filter_map(|session| keys.get(session)) {
            let sum: &mut u64 = sums.entry((*key).clone()).or_default();
            *sum = sum.saturating_add(usage.total_tokens());
        }
    }
    sums
}
