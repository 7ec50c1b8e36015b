//! Who works in a run, and what they may do and know.

use std::sync::Arc;

use async_trait::async_trait;
use mainstem_policy::Rules;
use mainstem_react::{Agent, RunContext};
use mainstem_spec::{AgentSpec, Skill, SkillSet};
use mainstem_tool::Artifacts;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    catalog::{Catalog, CatalogEntry, error::CatalogError, factory::AgentFactory},
    spawn::{lineage::Lineage, versions},
};

/// What a run begins with, and what it keeps to its end with all that it starts, whatever becomes
/// of the files meanwhile. [`Fleet::enter`](crate::fleet::Fleet::enter) puts it into the run's context.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Crew {
    /// Who answers the caller.
    pub root: Agent,
    /// Who can be spawned.
    pub catalog: Catalog,
    /// What all of them may run; what an agent's spec says narrows it.
    pub rules: Rules,
    /// What they can read up on; an agent's spec narrows that, too.
    pub skills: SkillSet,
    /// Where results are kept that are too long for a conversation; without it they are cut.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// What builds agents that an earlier process has spawned and that are declared otherwise by
    /// now; without it they can't be sent to.
    pub factory: Option<Arc<AgentFactory>>,
}

impl Crew {
    /// A root that can spawn nobody, may run everything and has no skills.
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

    /// The same with others to spawn.
    #[must_use]
    pub fn with_catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = catalog;
        self
    }

    /// The same under rules.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The same with skills.
    #[must_use]
    pub fn with_skills(mut self, skills: SkillSet) -> Self {
        self.skills = skills;
        self
    }

    /// The same with a place for long results.
    #[must_use]
    pub fn with_artifacts(mut self, artifacts: Option<Arc<dyn Artifacts>>) -> Self {
        self.artifacts = artifacts;
        self
    }

    /// Sets the factory that builds agents of an earlier process.
    #[must_use]
    pub fn with_factory(mut self, factory: Arc<AgentFactory>) -> Self {
        self.factory = Some(factory);
        self
    }

    /// Returns the agent that was spawned as this version: that of the catalog if the version is
    /// the same, else one built from the record.
    pub(crate) fn spawned_as(
        &self,
        id: &str,
        version: &str,
        recorded: Option<&Value>,
    ) -> Option<CatalogEntry> {
        let is_same =
            |entry: &&CatalogEntry| versions::version(&entry.spec).is_some_and(|(same, _)| same == version);
        if let Some(entry) = self.catalog.get(id).filter(is_same) {
            return Some(entry.clone());
        }
        let spec = AgentSpec::deserialize(recorded?).ok()?;
        let entry = self.factory.as_ref()?.entry(spec);
        let failed = |error: &CatalogError| {
            tracing::warn!(agent = id, %error, "an agent of an earlier process can't be built again");
        };
        entry.inspect_err(failed).ok()
    }

    /// What the context's agent can read up on: what neither its spec nor that of any agent above
    /// it leaves out.
    pub(crate) fn skills_of(&self, cx: &RunContext) -> impl Iterator<Item = &Skill> {
        let lists: Vec<_> = Lineage::of(cx).collect();
        let lists = move |skill: &Skill| {
            lists
                .iter()
                .filter_map(|agent| agent.entry.spec.skills.as_ref())
                .all(|list| list.contains(&skill.name))
        };
        self.skills.iter().filter(move |skill| lists(skill))
    }
}

/// Says who works in the next run of a session.
#[async_trait]
pub trait Crews: Send + Sync + 'static {
    /// Those who work in a run that begins now. Asked once a run, when its turn has come and before
    /// anything of it happens.
    ///
    /// Must not block; the run may be dropped while it waits.
    async fn present(&self) -> Arc<Crew>;

    /// Who is known without looking; nobody by default. Whoever opens a session asks this first,
    /// perhaps outside a runtime.
    fn known(&self) -> Option<Arc<Crew>> {
        None
    }
}

/// The same crew for every run.
#[async_trait]
impl Crews for Arc<Crew> {
    async fn present(&self) -> Self {
        self.clone()
    }

    fn known(&self) -> Option<Self> {
        Some(self.clone())
    }
}
