//! The protocols over which an agent of ours is remote, and their servers.

use mainstem::{prelude::*, spec::Protocol};
use tokio::task::JoinHandle;

use crate::{
    agentscope,
    anywhere::{serve, serve_with},
    chain::remote,
    fallback::a2a,
};

/// How a server of the far agent is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Speaks {
    Mainstem,
    AgentScope,
    A2a,
    /// A2A without our extension.
    PlainA2a,
    /// A2A without our extension and without streams.
    PolledA2a,
    LangGraph,
}

impl Speaks {
    /// Returns a spec of the agent that leads a server's runs.
    pub(crate) fn declared(self, id: &str, url: &str) -> AgentSpec {
        match self {
            Self::Mainstem => remote(id, url),
            Self::AgentScope => remote(id, url).with_protocol(Protocol::AgentScope),
            Self::A2a | Self::PlainA2a | Self::PolledA2a => remote(id, url).with_protocol(Protocol::A2a),
            Self::LangGraph => {
                remote(id, &format!("{url}/lg/assistants/{id}")).with_protocol(Protocol::LangGraph)
            }
        }
    }

    pub(crate) async fn serve(self, far: Harness) -> (String, JoinHandle<()>) {
        match self {
            Self::Mainstem => serve(far).await,
            Self::AgentScope => agentscope::serve(far).await,
            Self::A2a => serve_with(far, Some(mainstem_server::Protocol::A2a)).await,
            Self::PlainA2a => a2a::serve(far, true).await,
            Self::PolledA2a => a2a::serve(far, false).await,
            Self::LangGraph => serve_with(far, Some(mainstem_server::Protocol::LangGraph)).await,
        }
    }
}
