//! Diagnostics of agents, without running any.

use mainstem_declarations::{Declarations, Diagnostic, examine};
use mainstem_spec::SpecSet;

use super::{HarnessBuilder, compose::Scope};
use crate::BuildError;

impl HarnessBuilder {
    /// Reads the agents and skills of the workspace and returns everything that a run would find
    /// wrong with them: in their files, and with the tools, models, skills and servers that they
    /// name. A model that this machine can't use, such as one without a key, is a warning: its
    /// file is in order.
    ///
    /// Starts nothing; blocks on the file system.
    ///
    /// # Errors
    /// As [`build`](Self::build), for the program's own declarations.
    pub fn check(&self) -> Result<Vec<Diagnostic>, BuildError> {
        let scope = self.scope(None)?;
        let (declarations, mut found) = scope.inputs.read(&Declarations::default())?;
        found.extend(self.problems(&scope, &declarations)?);
        Ok(found)
    }

    /// Returns what a run would find wrong with these agents if they were declared beside those of
    /// the workspace. They replace agents with the same id.
    ///
    /// Starts nothing; blocks on the file system.
    ///
    /// # Errors
    /// As [`build`](Self::build), for the program's own declarations.
    pub fn check_agents(&self, agents: &SpecSet) -> Result<Vec<Diagnostic>, BuildError> {
        let scope = self.scope(None)?;
        let (declarations, _) = scope.inputs.read(&Declarations::default())?;
        let mut found = self.problems(&scope, &declarations.with_agents(agents))?;
        found.retain(|found| agents.iter().any(|agent| found.is_about(&agent.origin)));
        Ok(found)
    }

    fn problems(&self, scope: &Scope, declarations: &Declarations) -> Result<Vec<Diagnostic>, BuildError> {
        let specs = declarations.specs();
        let (mut factory, _) = self.factory(scope, None, declarations.skills())?;
        let workspaces = scope.inputs.sources().workspaces();
        let (offers, mut found) = scope.servers.renew(specs, |spec| self.trust.untrusted(spec, workspaces));
        factory.servers = offers;
        found.extend(examine(&factory.catalog(specs).1, specs));
        found.extend(self.misspelt_rules(&factory));
        Ok(found)
    }
}
