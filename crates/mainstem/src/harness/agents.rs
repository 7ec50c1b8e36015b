//! The agents of a harness, read again before a run if their files have changed.

use std::sync::Arc;

use mainstem_declarations::{
    Build, DeclarationError, Declarations, Diagnostic, Lead, LeaderError, Reloading, leader,
};
use mainstem_message::Failure;
use mainstem_session::{AgentSource, RunAgents};
use mainstem_tool::async_trait;

use super::{
    HarnessBuilder,
    builder::{Scope, Servers},
};
use crate::BuildError;

/// The agents of a scope.
#[derive(Clone)]
pub(super) struct Agents(Reloading<Composed>);

/// The parts from which agents are built.
struct Composed {
    builder: Arc<HarnessBuilder>,
    scope: Scope,
}

impl Agents {
    /// Reads the declared agents. Blocks on the file system.
    pub(super) fn open(builder: Arc<HarnessBuilder>, scope: Scope) -> Result<Self, BuildError> {
        let inputs = scope.inputs.clone();
        Ok(Self(Reloading::open(inputs, Composed { builder, scope })?))
    }

    /// Returns the agents of the latest run, or of the first.
    pub(super) fn current(&self) -> RunAgents {
        self.0.current().as_ref().clone()
    }

    /// Returns the diagnostics of the declarations, from when they were last read.
    pub(super) fn diagnostics(&self) -> Arc<[Diagnostic]> {
        self.0.diagnostics()
    }

    /// Returns the MCP servers.
    pub(super) fn servers(&self) -> &Servers {
        &self.0.builder().scope.servers
    }

    /// Returns the agents of a run that is led in this way.
    pub(super) async fn led_by(&self, lead: Lead) -> Result<RunAgents, BuildError> {
        Ok(self.0.led_by(lead).await?.as_ref().clone())
    }
}

impl Build for Composed {
    type Output = RunAgents;
    type Error = BuildError;

    fn build(
        &self,
        declarations: &Declarations,
        last: Option<&RunAgents>,
    ) -> Result<(RunAgents, Vec<Diagnostic>), BuildError> {
        let (agents, found) = self.builder.compose(&self.scope, declarations, last, None, None)?;
        match self.builder.leader() {
            Some(id) => {
                let lead = Lead { agent: Some(id.to_owned()), model: None };
                Ok((self.lead(declarations, &agents, &lead)?.unwrap_or(agents), found))
            }
            None => Ok((agents, found)),
        }
    }

    fn lead(
        &self,
        declarations: &Declarations,
        current: &RunAgents,
        Lead { agent, model }: &Lead,
    ) -> Result<Option<RunAgents>, BuildError> {
        let agent = agent.as_deref().or_else(|| self.builder.leader());
        if model.is_none() && agent.is_none_or(|agent| **current.root().id() == *agent) {
            return Ok(None);
        }
        // Unless another agent always leads, its own may have no declaration.
        let is_own = |agent: &str| self.builder.leader().is_none() && **current.root().id() == *agent;
        let other = agent.filter(|agent| !is_own(agent));
        let leader = other.map(|agent| leader(current.catalog(), agent)).transpose()?;
        let (scope, model) = (&self.scope, model.as_deref());
        Ok(Some(self.builder.compose(scope, declarations, Some(current), leader, model)?.0))
    }
}

#[async_trait]
impl AgentSource for Agents {
    async fn agents(&self, leader: Option<&str>, model: Option<&str>) -> Result<RunAgents, Failure> {
        if leader.is_none() && model.is_none() {
            return Ok(self.0.refreshed().await.as_ref().clone());
        }
        let lead = Lead { agent: leader.map(str::to_owned), model: model.map(str::to_owned) };
        self.led_by(lead).await.map_err(|error| failure(&error))
    }

    fn known(&self) -> Option<RunAgents> {
        Some(self.current())
    }
}

/// Returns why an agent can't lead, as a run reports it.
fn failure(error: &BuildError) -> Failure {
    let code = match error {
        BuildError::Leader(LeaderError::Unknown { .. }) => "unknown_agent",
        BuildError::Leader(LeaderError::OnlySpawned { .. }) => "only_spawned",
        _ => "agent_unusable",
    };
    Failure::new(code, error.to_string())
}

impl From<DeclarationError> for BuildError {
    fn from(error: DeclarationError) -> Self {
        match error {
            DeclarationError::Agent(error) => Self::Agent(error),
            error => Self::Declaration(error),
        }
    }
}
