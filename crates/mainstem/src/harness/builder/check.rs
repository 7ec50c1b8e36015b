//! What is wrong with agents, found without running any.

use mainstem_model::ResolveError;
use mainstem_spec::{Severity, SpecError, SpecSet};
use mainstem_subagent::CatalogError;

use super::{
    HarnessBuilder,
    crew::{Declared, Scope},
};
use crate::BuildError;

impl HarnessBuilder {
    /// Reads the agents and skills of the workspace and returns everything that a run would find
    /// wrong with them: in their files, and with the tools, models, skills and servers that they
    /// name. A model that can't be asked from here, such as for want of a key, is a warning: its
    /// file is in order.
    ///
    /// Starts nothing; blocks on the file system.
    ///
    /// # Errors
    /// As [`build`](Self::build), of what the program itself declares.
    pub fn check(&self) -> Result<Vec<SpecError>, BuildError> {
        let scope = self.scope(None)?;
        let (declared, mut found) = self.read(&scope)?;
        found.extend(self.problems(&scope, &declared, declared.specs())?);
        Ok(found)
    }

    /// Returns what a run would find wrong with these agents if they were declared beside those of
    /// the workspace, which they replace where they have the same id.
    ///
    /// Starts nothing; blocks on the file system.
    ///
    /// # Errors
    /// As [`build`](Self::build), of what the program itself declares.
    pub fn check_agents(&self, agents: &SpecSet) -> Result<Vec<SpecError>, BuildError> {
        let scope = self.scope(None)?;
        let (declared, _) = self.read(&scope)?;
        let mut all = declared.specs().clone();
        for agent in agents.iter() {
            all.remove(&agent.id);
            all.insert(agent.clone());
        }
        let mut found = self.problems(&scope, &declared, &all)?;
        let files: Vec<_> = agents.iter().map(|agent| &agent.origin).collect();
        found.retain(|found| files.iter().any(|origin| found.is_about(origin)));
        Ok(found)
    }

    fn read(&self, scope: &Scope) -> Result<(Declared, Vec<SpecError>), BuildError> {
        self.declared(scope, &mut scope.sources.watch(), &Declared::default())
    }

    fn problems(
        &self,
        scope: &Scope,
        declared: &Declared,
        specs: &SpecSet,
    ) -> Result<Vec<SpecError>, BuildError> {
        let (mut factory, _) = self.factory(scope, None, declared.skills())?;
        let (offers, mut found) = scope.servers.renew(specs, |spec| self.untrusted(scope, spec));
        factory.servers = offers;
        found.extend(factory.catalog(specs).1.iter().map(|problem| milder(problem, problem.finding(specs))));
        Ok(found)
    }
}

/// A file is in order if its model only lacks something of this machine.
fn milder(problem: &CatalogError, mut finding: SpecError) -> SpecError {
    if let CatalogError::Model { source: ResolveError::Provider { .. }, .. } = problem {
        finding.severity = Severity::Warning;
    }
    finding
}
