//! Which agents have the tools of a server.

use std::{fmt, sync::Arc};

use mainstem_spec::AgentSpec;
use mainstem_tool::ToolSource;

/// A server with tools, and the agents that have them.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolGrant {
    /// The server.
    pub source: Arc<dyn ToolSource>,
    /// The agents.
    pub to: Grantee,
}

/// The agents that have a server's tools. Those whose spec lists servers have no others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grantee {
    /// All agents.
    Everyone,
    /// Those whose spec lists the server.
    Listed,
    /// The agent whose own spec declares the server, which replaces another of the same name.
    Agent(String),
}

impl ToolGrant {
    /// Creates a grant of a server's tools.
    pub fn new(source: Arc<dyn ToolSource>, to: Grantee) -> Self {
        Self { source, to }
    }

    /// Returns `true` if an agent has the tools.
    pub(super) fn is_for(&self, spec: &AgentSpec) -> bool {
        let lists = || spec.mcp_servers.iter().flatten().any(|server| server.name == self.source.name());
        match &self.to {
            Grantee::Everyone => spec.mcp_servers.is_none() || lists(),
            Grantee::Listed => lists(),
            Grantee::Agent(id) => *id == spec.id,
        }
    }

    /// Returns `true` if the server is one agent's own.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.to, Grantee::Agent(_))
    }
}

impl fmt::Debug for ToolGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolGrant").field("source", &self.source.name()).field("to", &self.to).finish()
    }
}
