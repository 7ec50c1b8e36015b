//! What is assembled for a run: its root, the agents that it can spawn, their rules and skills.

use std::sync::Arc;

use mainstem_policy::Rules;
use mainstem_react::Agent;
use mainstem_spec::{AgentSpec, SkillSet};
use mainstem_tool::Artifacts;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    catalog::{Catalog, CatalogEntry, Factory, error::CatalogError},
    spawn::versions::version,
};

/// What is assembled for a run. It is in effect until the run and all that it starts have ended,
/// whatever changes in the files meanwhile. [`Fleet::enter`](crate::Fleet::enter) puts it into the
/// run's context.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Assembly {
    /// The agent that answers the caller.
    pub root: Agent,
    /// The agents that can be spawned.
    pub catalog: Catalog,
    /// What all of them may run; an agent's spec narrows it.
    pub rules: Rules,
    /// The skills that they can load; an agent's spec narrows that, too.
    pub skills: SkillSet,
    /// The store of results that are too long for a conversation; without it they are cut.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// Builds agents that an earlier process has spawned and whose declarations have changed;
    /// without it they can't be sent to.
    pub factory: Option<Arc<dyn Factory>>,
}

impl Assembly {
    /// Creates one with this root, nothing to spawn, no rules and no skills.
    pub fn new(root: Agent) -> Self {
        Self {
            root,
            catalog: Catalog::default(),
            rules: Rules::new(),
            skills: SkillSet::new(),
            artifacts: None,
            factory: None,
        }
    }

    /// Sets the agents that can be spawned.
    #[must_use]
    pub fn with_catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = catalog;
        self
    }

    /// Sets the rules.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets the skills.
    #[must_use]
    pub fn with_skills(mut self, skills: SkillSet) -> Self {
        self.skills = skills;
        self
    }

    /// Sets the store of long results.
    #[must_use]
    pub fn with_artifacts(mut self, artifacts: Option<Arc<dyn Artifacts>>) -> Self {
        self.artifacts = artifacts;
        self
    }

    /// Sets what builds agents of an earlier process.
    #[must_use]
    pub fn with_factory(mut self, factory: Arc<dyn Factory>) -> Self {
        self.factory = Some(factory);
        self
    }

    /// Returns the agent that was spawned as this version: that of the catalog if the version is
    /// the same, else one built from the record.
    pub(crate) fn spawned_as(
        &self,
        id: &str,
        spawned: &str,
        recorded: Option<&Value>,
    ) -> Option<CatalogEntry> {
        let is_same = |entry: &&CatalogEntry| version(&entry.spec).is_some_and(|(same, _)| same == spawned);
        if let Some(entry) = self.catalog.get(id).filter(is_same) {
            return Some(entry.clone());
        }
        let mut code = self.catalog.code(id).filter(is_same);
        // Two that are declared alike can't be told apart.
        if let (Some(entry), None) = (code.next(), code.next()) {
            return Some(entry.clone());
        }
        let spec = AgentSpec::deserialize(recorded?).ok()?;
        let entry = self.factory.as_ref()?.entry(spec);
        let failed = |error: &CatalogError| {
            tracing::warn!(agent = id, %error, "an agent of an earlier process can't be built again");
        };
        entry.inspect_err(failed).ok()
    }
}
