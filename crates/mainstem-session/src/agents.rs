//! The agents of a run, and where a session finds them.

use std::sync::Arc;

use async_trait::async_trait;
use mainstem_message::Failure;
use mainstem_policy::Rules;
use mainstem_react::Agent;
use mainstem_spec::SkillSet;
use mainstem_subagent::{AgentFactory, Assembly, Catalog};
use mainstem_tool::Artifacts;

/// The agents of a run: the one that leads it, those that it can spawn, and what they may do and
/// know. A run keeps its agents to its end, with all that it starts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RunAgents(Arc<Assembly>);

impl RunAgents {
    /// A root that can spawn no agent, may run every tool and has no skills.
    pub fn new(root: Agent) -> Self {
        Self(Arc::new(Assembly::new(root)))
    }

    /// Replaces the agent that leads.
    #[must_use]
    pub(crate) fn with_root(self, root: Agent) -> Self {
        self.map(|mut agents| {
            agents.root = root;
            agents
        })
    }

    /// Sets the agents that can be spawned.
    #[must_use]
    pub fn with_catalog(self, catalog: Catalog) -> Self {
        self.map(|agents| agents.with_catalog(catalog))
    }

    /// Sets the rules for all of them; the spec of an agent narrows them.
    #[must_use]
    pub fn with_rules(self, rules: Rules) -> Self {
        self.map(|agents| agents.with_rules(rules))
    }

    /// Sets the skills; the spec of an agent narrows them.
    #[must_use]
    pub fn with_skills(self, skills: SkillSet) -> Self {
        self.map(|agents| agents.with_skills(skills))
    }

    /// Sets the store of results that are too long for a conversation; without it they are cut.
    #[must_use]
    pub fn with_artifacts(self, artifacts: Option<Arc<dyn Artifacts>>) -> Self {
        self.map(|agents| agents.with_artifacts(artifacts))
    }

    /// Sets the factory that builds agents of an earlier process.
    #[must_use]
    pub fn with_factory(self, factory: Arc<AgentFactory>) -> Self {
        self.map(|agents| agents.with_factory(factory))
    }

    /// The agent that leads.
    pub fn root(&self) -> &Agent {
        &self.0.root
    }

    /// The agents that can be spawned.
    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// The skills.
    pub fn skills(&self) -> &SkillSet {
        &self.0.skills
    }

    /// What all of them may run.
    pub fn rules(&self) -> &Rules {
        &self.0.rules
    }

    /// Returns `true` if both are clones of one value.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn shared(&self) -> &Arc<Assembly> {
        &self.0
    }

    fn map(self, change: impl FnOnce(Assembly) -> Assembly) -> Self {
        Self(Arc::new(change(Arc::unwrap_or_clone(self.0))))
    }
}

/// Where a session finds the agents of its next run.
#[async_trait]
pub trait AgentSource: Send + Sync + 'static {
    /// Returns the agents of a run that begins now, led by the agent of this id or, with `None`, by
    /// the default one, with the model of this name or its own. Called once a run, when its turn
    /// has come and before its first event.
    ///
    /// Must not block; the run may be dropped while it waits.
    ///
    /// # Errors
    /// The agent can't lead: `unknown_agent`, `only_spawned` or `agent_unusable`, which stands for
    /// an unknown model, too.
    async fn agents(&self, leader: Option<&str>, model: Option<&str>) -> Result<RunAgents, Failure>;

    /// Returns the agents that are known without waiting; by default none. A session asks for them
    /// when it is opened, perhaps outside a runtime.
    fn known(&self) -> Option<RunAgents> {
        None
    }
}

/// The same agents for every run.
#[async_trait]
impl AgentSource for RunAgents {
    async fn agents(&self, leader: Option<&str>, model: Option<&str>) -> Result<Self, Failure> {
        let own = self.root().model();
        if let Some(model) = model.filter(|model| *model != own.name()) {
            let why = format!("the model of this session is {:?}, not {model:?}", own.name());
            return Err(Failure::new("agent_unusable", why));
        }
        match leader.filter(|id| **self.root().id() != **id) {
            None => Ok(self.clone()),
            Some(id) => {
                let why = format!("this session is led by {:?}, not by {id:?}", self.root().id());
                Err(Failure::new("unknown_agent", why))
            }
        }
    }

    fn known(&self) -> Option<Self> {
        Some(self.clone())
    }
}
