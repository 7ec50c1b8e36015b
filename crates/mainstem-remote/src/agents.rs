//! The remote agents of a program: from their declarations to what runs them.

use std::{collections::BTreeMap, env, sync::Arc};

use mainstem_outbound::{Host, Reach};
use mainstem_spec::AgentSpec;
use mainstem_subagent::{RemoteAgents, Runner};

use crate::{MainstemAgent, RemoteAgent, RemoteRunner};

/// Runs the agents that are declared with a `url`, and those that the program gives itself.
///
/// Headers get their variables from the environment when the agents are built. Addresses are those
/// of the public internet, unless [hosts](Self::with_host) are allowed.
#[derive(Clone, Debug, Default)]
pub struct Remotes {
    reach: Reach,
    agents: BTreeMap<String, RemoteRunner>,
}

impl Remotes {
    /// Creates one that reaches hosts with a public address.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows hosts whose address is not public.
    #[must_use]
    pub fn with_host(mut self, host: Host) -> Self {
        self.reach = self.reach.with_host(host);
        self
    }

    /// Adds an agent in a protocol of the program: that of the spec with this id.
    #[must_use]
    pub fn with_agent(mut self, id: &str, agent: impl RemoteAgent) -> Self {
        self.agents.insert(id.to_owned(), RemoteRunner::new(agent, id));
        self
    }

    /// Returns the agent at an address, with its headers.
    fn at(&self, url: &str, spec: &AgentSpec) -> Result<MainstemAgent, String> {
        let mut agent = MainstemAgent::at(url, &self.reach).map_err(|error| error.to_string())?;
        let var = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        for header in &spec.headers {
            let added = agent.with_expanded_header(&header.name, &header.value, var);
            agent = added.map_err(|error| error.to_string())?;
        }
        Ok(agent)
    }
}

impl RemoteAgents for Remotes {
    fn runner(&self, spec: &AgentSpec) -> Result<Option<Arc<dyn Runner>>, String> {
        if let Some(agent) = self.agents.get(&spec.id) {
            return Ok(Some(Arc::new(agent.clone())));
        }
        let Some(url) = &spec.url else { return Ok(None) };
        Ok(Some(Arc::new(RemoteRunner::new(self.at(url, spec)?, &*spec.id))))
    }
}
