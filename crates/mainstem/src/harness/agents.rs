//! The agents of a harness, read again before a run if their files have changed.

use std::sync::Arc;

use mainstem_declarations::{Build, DeclarationError, Declarations, Diagnostic, Reloading, leader};
use mainstem_session::{Assembly, AssemblySource};
use mainstem_tool::async_trait;

use super::{
    HarnessBuilder,
    builder::{Scope, Servers},
};
use crate::BuildError;

/// The agents that run in a scope.
#[derive(Clone)]
pub(super) struct Agents(Reloading<Composed>);

/// What agents are built from.
struct Composed {
    builder: Arc<HarnessBuilder>,
    scope: Scope,
}

impl Agents {
    /// Reads what is declared. Blocks on the file system.
    pub(super) fn open(builder: Arc<HarnessBuilder>, scope: Scope) -> Result<Self, BuildError> {
        let inputs = scope.inputs.clone();
        Ok(Self(Reloading::open(inputs, Composed { builder, scope })?))
    }

    /// The agents of the latest run, or of the first.
    pub(super) fn current(&self) -> Arc<Assembly> {
        self.0.current()
    }

    /// What was wrong with the declarations when they were last read.
    pub(super) fn diagnostics(&self) -> Arc<[Diagnostic]> {
        self.0.diagnostics()
    }

    /// The MCP servers.
    pub(super) fn servers(&self) -> &Servers {
        &self.0.builder().scope.servers
    }

    /// The same agents, led by the agent of this id.
    pub(super) async fn led_by(&self, id: &str) -> Result<Arc<Assembly>, BuildError> {
        self.0.led_by(id).await
    }
}

impl Build for Composed {
    type Output = Assembly;
    type Error = BuildError;

    fn build(
        &self,
        declarations: &Declarations,
        last: Option<&Assembly>,
    ) -> Result<(Assembly, Vec<Diagnostic>), BuildError> {
        self.builder.compose(&self.scope, declarations, last, None)
    }

    fn lead(
        &self,
        declarations: &Declarations,
        current: &Assembly,
        agent: &str,
    ) -> Result<Option<Assembly>, BuildError> {
        if **current.root.id() == *agent {
            return Ok(None);
        }
        let leader = leader(&current.catalog, agent)?;
        Ok(Some(self.builder.compose(&self.scope, declarations, Some(current), Some(leader))?.0))
    }
}

#[async_trait]
impl AssemblySource for Agents {
    async fn present(&self) -> Arc<Assembly> {
        self.0.refreshed().await
    }

    fn known(&self) -> Option<Arc<Assembly>> {
        Some(self.current())
    }
}

impl From<DeclarationError> for BuildError {
    fn from(error: DeclarationError) -> Self {
        match error {
            DeclarationError::Agent(error) => Self::Agent(error),
            error => Self::Declaration(error),
        }
    }
}
