//! Agents whose declaration names no protocol: their server is asked which one it has.

use std::{cell::RefCell, collections::BTreeMap, env, fmt, sync::Arc};

use async_trait::async_trait;
use mainstem_event::fold::RecordedTurn;
use mainstem_outbound::Reach;
use mainstem_spec::{AgentSpec, Header, Protocol};
use tokio::{sync::OnceCell, time::sleep};

use crate::{
    A2aAgent, AgentScopeAgent, AgentScopeServiceAgent, BegunTurn, LangGraphAgent, MainstemAgent, RemoteAgent,
    RemoteError, RemoteTurn,
    agents::{About, Declared},
    http::{INTERVAL, RETRIES},
};

/// What a declaration says of a remote, with its variables as they were when the agents were built.
#[derive(Clone)]
pub(crate) struct Declaration {
    url: String,
    id: String,
    /// The protocol, if it is declared.
    protocol: Option<Protocol>,
    headers: Vec<Header>,
    variables: BTreeMap<String, String>,
    reach: Reach,
}

impl Declaration {
    /// Reads the variables that the headers name.
    ///
    /// # Errors
    /// As [`agent`](Self::agent).
    pub(crate) fn new(url: &str, spec: &AgentSpec, reach: &Reach) -> Result<Self, RemoteError> {
        let (url, headers, variables) = (url.to_owned(), spec.headers.clone(), BTreeMap::new());
        let (id, protocol, reach) = (spec.id.clone(), spec.protocol, reach.clone());
        let mut declaration = Self { url, id, protocol, headers, variables, reach };
        let variables = RefCell::new(BTreeMap::new());
        declaration.with_variables::<MainstemAgent>(|name| {
            let value = env::var(name).ok().filter(|value| !value.is_empty())?;
            variables.borrow_mut().insert(name.to_owned(), value.clone());
            Some(value)
        })?;
        declaration.variables = variables.into_inner();
        Ok(declaration)
    }

    /// Returns the agent in a protocol.
    ///
    /// # Errors
    /// The URL is out of reach, or a header is not valid or names a variable that is unset.
    pub(crate) fn agent<A: Declared>(&self) -> Result<A, RemoteError> {
        self.with_variables(|name| self.variables.get(name).cloned())
    }

    fn with_variables<A: Declared>(&self, var: impl Fn(&str) -> Option<String>) -> Result<A, RemoteError> {
        let agent = A::declared(&self.url, &self.id, &self.reach)?;
        let add = |agent: A, header: &Header| agent.with_expanded_header(&header.name, &header.value, &var);
        self.headers.iter().try_fold(agent, add)
    }
}

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
    pub(crate) fn new(declaration: Declaration) -> Self {
        Self { declaration, found: OnceCell::new() }
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
                    return Ok(Arc::new(self.declaration.agent::<AgentScopeAgent>()?));
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
        let agent = self.declaration.agent::<A>()?;
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
