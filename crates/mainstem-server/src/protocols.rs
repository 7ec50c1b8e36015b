//! Protocols of others, served beside `/v1`: each an encoder and a few routes.
//!
//! Their requests have the callers, limits and sessions of `/v1`; what an encoder leaves out of a
//! stream is on the page of the book about protocols.

mod a2a;
mod agent_protocol;
mod agui;
mod fleet;
mod langgraph;
#[cfg(feature = "mcp")]
mod mcp;

use std::{fmt, str::FromStr, sync::Arc};

use axum::{
    Extension, Router,
    handler::Handler,
    routing::{MethodRouter, post},
};

pub(crate) use self::a2a::{MAX_CONFIGS, MAX_TASKS, Pushes};
use crate::{app::App, caller::TakesBody};

/// A protocol of others that a server speaks beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// AG-UI 1.0: `POST /ag-ui/{agent}`.
    AgUi,
    /// Agent2Agent 1.0: `/.well-known/agent-card.json` and `/a2a`.
    A2a,
    /// The Agent Protocol of AgentScope: `/tasks`.
    AgentProtocol,
    /// Threads and runs as LangGraph's server has them: `/lg`.
    LangGraph,
    /// The event streams of Arbiter: `POST /v1/orchestrate`.
    Fleet,
    /// MCP's streamable HTTP: `POST /mcp`.
    #[cfg(feature = "mcp")]
    Mcp,
}

/// A name is not that of a protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a protocol; known: {}", Protocol::names())]
#[non_exhaustive]
pub struct UnknownProtocol {
    /// The name.
    pub name: String,
}

impl Protocol {
    /// Every protocol.
    pub const ALL: &[Self] = &[
        Self::AgUi,
        Self::A2a,
        Self::AgentProtocol,
        Self::LangGraph,
        Self::Fleet,
        #[cfg(feature = "mcp")]
        Self::Mcp,
    ];

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::AgUi => "agui",
            Self::A2a => "a2a",
            Self::AgentProtocol => "agent-protocol",
            Self::LangGraph => "langgraph",
            Self::Fleet => "fleet",
            #[cfg(feature = "mcp")]
            Self::Mcp => "mcp",
        }
    }

    fn names() -> String {
        Self::ALL.iter().map(|protocol| protocol.name()).collect::<Vec<_>>().join(", ")
    }

    /// Returns its routes.
    pub(crate) fn routes(self) -> Router<Arc<App>> {
        match self {
            Self::AgUi => agui::routes(),
            Self::A2a => a2a::routes(),
            Self::AgentProtocol => agent_protocol::routes(),
            Self::LangGraph => langgraph::routes(),
            Self::Fleet => fleet::routes(),
            #[cfg(feature = "mcp")]
            Self::Mcp => mcp::routes(),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(name: &str) -> Result<Self, UnknownProtocol> {
        let found = Self::ALL.iter().find(|protocol| protocol.name() == name);
        found.copied().ok_or_else(|| UnknownProtocol { name: name.to_owned() })
    }
}

/// Returns a route whose handler reads a [`Body`](crate::body::Body).
fn post_with_body<H: Handler<T, Arc<App>>, T: 'static>(handler: H) -> MethodRouter<Arc<App>> {
    post(handler).layer(Extension(TakesBody))
}
