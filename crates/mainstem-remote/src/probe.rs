//! Agents whose declaration names no protocol: their server is asked which one it has.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use mainstem_event::fold::RecordedTurn;
use mainstem_spec::Protocol;
use tokio::{sync::OnceCell, time::sleep};

use crate::{
    A2aAgent, AgentScopeAgent, AgentScopeServiceAgent, BegunTurn, LangGraphAgent, MainstemAgent, RemoteAgent,
    RemoteError, RemoteTurn,
    declaration::{About, Declaration, Declared},
    http::{INTERVAL, RETRIES},
};

/// The agent of a declaration without a protocol. Its server is asked at the first turn, and again
/// at the next one if that has failed.
pub(crate) struct ProbedAgent {
    declaration: Declaration,
    found: OnceCell<Arc<dyn RemoteAgent>>,
}

/// An agent in the protocol of its server.
pub(crate) struct Spoken {
    pub(crate) protocol: Protocol,
    pub(crate) about: About,
    agent: Arc<dyn RemoteAgent>,
}

impl ProbedAgent {
    /// Creates the agent of a declaration.
    ///
    /// # Errors
    /// The URL is not valid or out of reach, or a header is not valid, in any protocol.
    pub(crate) fn new(declaration: Declaration) -> Result<Self, RemoteError> {
        MainstemAgent::declared(&declaration)?;
        Ok(Self { declaration, found: OnceCell::new() })
    }

    /// Returns the agent in the protocol of its server, which is asked once.
    async fn found(&self) -> Result<&Arc<dyn RemoteAgent>, RemoteError> {
        self.found.get_or_try_init(|| self.probe()).await
    }

    /// Returns the agent in the protocol of its server. An address below `/v1/agents` is one of
    /// Mainstem's.
    async fn probe(&self) -> Result<Arc<dyn RemoteAgent>, RemoteError> {
        let mut attempt = 0;
        loop {
            match self.ask().await {
                Err(RemoteError::Unreachable { .. }) if attempt < RETRIES => {
                    attempt += 1;
                    sleep(INTERVAL).await;
                }
                // A server of tasks may not say so of one that does not exist.
                Err(RemoteError::Invalid { .. }) if self.is_agentscope() => {
                    return Ok(Arc::new(AgentScopeAgent::declared(&self.declaration)?));
                }
                found => return found.map(|spoken| spoken.agent),
            }
        }
    }

    /// Asks the server which protocol it speaks.
    pub(crate) async fn ask(&self) -> Result<Spoken, RemoteError> {
        let mut denied = None;
        let mut found = self.spoken::<MainstemAgent>(&mut denied).await?;
        if found.is_none() {
            found = self.spoken::<A2aAgent>(&mut denied).await?;
        }
        if found.is_none() {
            found = self.spoken::<LangGraphAgent>(&mut denied).await?;
        }
        if found.is_none() {
            found = self.spoken::<AgentScopeAgent>(&mut denied).await?;
        }
        if found.is_none() {
            found = self.spoken::<AgentScopeServiceAgent>(&mut denied).await?;
        }
        found.ok_or_else(|| denied.unwrap_or_else(|| self.unknown()))
    }

    /// Returns the agent if its server speaks this protocol. A server that requires a credential
    /// may speak it.
    async fn spoken<A: Declared>(
        &self,
        denied: &mut Option<RemoteError>,
    ) -> Result<Option<Spoken>, RemoteError> {
        if self.declaration.protocol.is_some_and(|protocol| protocol != A::PROTOCOL) {
            return Ok(None);
        }
        let agent = A::declared(&self.declaration)?;
        match agent.describe().await {
            Ok(about) => {
                let agent: Arc<dyn RemoteAgent> = Arc::new(agent);
                Ok(about.map(|about| Spoken { protocol: A::PROTOCOL, about, agent }))
            }
            Err(error @ RemoteError::Refused { status: Some(401 | 403), .. }) => {
                denied.get_or_insert(error);
                Ok(None)
            }
            // A server that is overloaded or fails has not said which protocol it speaks.
            Err(error @ RemoteError::Refused { status: Some(429 | 500 | 502..=599), .. }) => Err(error),
            Err(RemoteError::Refused { .. } | RemoteError::Invalid { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_agentscope(&self) -> bool {
        self.declaration.protocol == Some(Protocol::AgentScope)
    }

    fn unknown(&self) -> RemoteError {
        let Declaration { url, protocol, .. } = &self.declaration;
        RemoteError::invalid(match protocol {
            Some(protocol) => format!("{url}: the server does not speak {protocol}"),
            None => format!(
                "{url}: no protocol that is known here (mainstem, a2a, langgraph, agentscope); if the server \
                 has one of them, name it with `protocol`"
            ),
        })
    }
}

#[async_trait]
impl RemoteAgent for ProbedAgent {
    async fn begin(&self, turn: RemoteTurn) -> Result<BegunTurn, RemoteError> {
        self.found().await?.begin(turn).await
    }

    fn can_find(&self) -> bool {
        // A protocol that can't says so when it is known.
        self.found.get().is_none_or(|found| found.can_find())
    }

    async fn find(&self, turn: RemoteTurn, recorded: &RecordedTurn) -> Result<BegunTurn, RemoteError> {
        self.found().await?.find(turn, recorded).await
    }
}

impl fmt::Debug for ProbedAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbedAgent").field("found", &self.found.get()).finish_non_exhaustive()
    }
}
