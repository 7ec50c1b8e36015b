//! The remote agents of a program: from their declarations to what runs them.

use std::{collections::BTreeMap, sync::Arc};

use mainstem_outbound::{Host, Reach};
use mainstem_spec::{AgentSpec, Protocol};
use mainstem_subagent::{RemoteAgents, Runner};

use crate::{
    A2aAgent, LangGraphAgent, MainstemAgent, RemoteAgent, RemoteError, RemoteRunner, TraceContext,
    declaration::{Declaration, Declared, Variables},
    mainstem,
    probe::ProbedAgent,
};

/// Runs the agents that are declared with a `url`, and those that the program gives itself.
///
/// Headers get their variables when the agents are built, from the
/// [program](Self::with_variable) or the environment. Addresses are those of the public internet,
/// unless [hosts](Self::with_host) are allowed.
#[derive(Clone, Debug, Default)]
pub struct Remotes {
    reach: Reach,
    agents: BTreeMap<String, RemoteRunner>,
    trace: TraceContext,
    variables: Variables,
}

/// What a server says of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteDescription {
    /// The protocol that it speaks.
    pub protocol: Protocol,
    /// Names, purposes and versions, as the server has them: text of others.
    pub about: String,
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

    /// Returns the hosts that are reached.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Sets a variable that headers may name as `${NAME}`, such as a token that the program has
    /// read from a vault. It counts before one of the environment with its name, and is a secret:
    /// no event, record or message has its value. An empty value counts as unset.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Sets where the trace of a turn is known, whose `traceparent` remotes get.
    #[must_use]
    pub fn with_trace_context(mut self, trace: TraceContext) -> Self {
        self.trace = trace;
        self
    }

    /// Adds an agent in a protocol of the program: that of the spec with this id.
    #[must_use]
    pub fn with_agent(mut self, id: &str, agent: impl RemoteAgent) -> Self {
        self.agents.insert(id.to_owned(), RemoteRunner::new(agent, id));
        self
    }

    /// Asks the server of a declaration what it says of the agent. No agent runs.
    ///
    /// # Errors
    /// The declaration has no `url` or is not valid, or its server can't be reached, refuses, or
    /// speaks no known protocol.
    pub async fn describe(&self, spec: &AgentSpec) -> Result<RemoteDescription, RemoteError> {
        let url = spec.url.as_deref().ok_or_else(|| RemoteError::invalid("the agent has no `url`"))?;
        let spoken =
            ProbedAgent::new(Declaration::new(url, spec, &self.reach, &self.variables)?)?.ask().await?;
        Ok(RemoteDescription { protocol: spoken.protocol, about: spoken.about? })
    }

    /// Returns the agent of a declaration, in the protocol of its server.
    fn at(&self, url: &str, spec: &AgentSpec) -> Result<RemoteRunner, RemoteError> {
        let declaration = Declaration::new(url, spec, &self.reach, &self.variables)?;
        let id = &*spec.id;
        Ok(match spec.protocol {
            Some(Protocol::Mainstem) => RemoteRunner::new(MainstemAgent::declared(&declaration)?, id),
            Some(Protocol::A2a) => RemoteRunner::new(A2aAgent::declared(&declaration)?, id),
            Some(Protocol::LangGraph) => RemoteRunner::new(LangGraphAgent::declared(&declaration)?, id),
            // Only Mainstem has agents at such addresses.
            None if url.contains(mainstem::AGENTS) => {
                RemoteRunner::new(MainstemAgent::declared(&declaration)?, id)
            }
            // AgentScope's Agent Protocol and its service are two.
            None | Some(Protocol::AgentScope) => RemoteRunner::new(ProbedAgent::new(declaration)?, id),
            Some(protocol) => {
                return Err(RemoteError::invalid(format!("protocol {protocol} is not in this version")));
            }
        })
    }
}

impl RemoteAgents for Remotes {
    fn runner(&self, spec: &AgentSpec) -> Result<Option<Arc<dyn Runner>>, String> {
        if let Some(agent) = self.agents.get(&spec.id) {
            return Ok(Some(Arc::new(agent.clone().with_trace_context(self.trace.clone()))));
        }
        let Some(url) = &spec.url else { return Ok(None) };
        let runner = self.at(url, spec).map_err(|error| error.to_string())?;
        Ok(Some(Arc::new(runner.with_trace_context(self.trace.clone()))))
    }
}
