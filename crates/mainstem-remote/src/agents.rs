//! The remote agents of a program: from their declarations to what runs them.

use std::{env, sync::Arc};

use mainstem_outbound::{Host, Reach, Secrets};
use mainstem_spec::AgentSpec;
use mainstem_subagent::{RemoteAgents, Runner};

use crate::{MainstemAgent, RemoteRunner};

/// Runs the agents that are declared with a `url`.
///
/// Headers get their variables from the environment when the agents are built. Addresses are those
/// of the public internet, unless [hosts](Self::with_host) are allowed.
#[derive(Clone, Debug, Default)]
pub struct Remotes {
    reach: Reach,
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
}

impl RemoteAgents for Remotes {
    fn runner(&self, spec: &AgentSpec) -> Result<Arc<dyn Runner>, String> {
        let url = spec.url.as_deref().unwrap_or_default();
        let mut agent = MainstemAgent::at(url, &self.reach).map_err(|error| error.to_string())?;
        let var = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        for header in &spec.headers {
            let value = Secrets::default().expand(&header.value, var);
            let value = value.map_err(|error| format!("header {:?}: {error}", header.name))?;
            agent = agent.with_header(&header.name, &value).map_err(|error| error.to_string())?;
        }
        Ok(Arc::new(RemoteRunner::new(agent, &*spec.id)))
    }
}
