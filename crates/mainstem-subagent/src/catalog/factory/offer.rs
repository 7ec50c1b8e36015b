//! Servers with tools, and which agents have them.

use std::{fmt, sync::Arc};

use mainstem_spec::AgentSpec;
use mainstem_tool::ToolSource;

/// A server with tools, and who has them.
#[derive(Clone)]
#[non_exhaustive]
pub struct Offer {
    /// The server.
    pub source: Arc<dyn ToolSource>,
    /// For whom.
    pub audience: Audience,
}

/// Which agents have a server's tools. Those whose spec lists servers have no others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Audience {
    /// All.
    Everyone,
    /// Those whose spec lists it.
    Listed,
    /// The agent whose own spec declares it; of the same name as another, it takes that one's
    /// place.
    Agent(String),
}

impl Offer {
    /// A server and who has its tools.
    pub fn new(source: Arc<dyn ToolSource>, audience: Audience) -> Self {
        Self { source, audience }
    }

    /// Whether an agent has its tools.
    pub(super) fn is_for(&self, spec: &AgentSpec) -> bool {
        let lists = || spec.mcp_servers.iter().flatten().any(|server| server.name == self.source.name());
        match &self.audience {
            Audience::Everyone => spec.mcp_servers.is_none() || lists(),
            Audience::Listed => lists(),
            Audience::Agent(id) => *id == spec.id,
        }
    }

    /// Whether it is some agent's own.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.audience, Audience::Agent(_))
    }
}

impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offer")
            .field("source", &self.source.name())
            .field("audience", &self.audience)
            .finish()
    }
}
