//! The agents that can be spawned: how they are built from specs, which of them a run has, and what
//! they are told about one another.

pub(crate) mod error;
pub(crate) mod factory;
pub(crate) mod finding;
pub(crate) mod generate;
pub(crate) mod generated;
pub(crate) mod prompt;
pub mod trust;

use std::{collections::BTreeMap, fmt, sync::Arc};

use mainstem_policy::Rules;
use mainstem_react::Agent;
use mainstem_spec::{AgentSpec, Mode};

use crate::{catalog::error::CatalogError, error::SpawnError, spawn::runner::Runner};

/// Agents by id. Built from specs once, then shared by all sessions.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    agents: BTreeMap<String, CatalogEntry>,
    /// Those that code has built, which their tools start. Several may have one id.
    code: Vec<CatalogEntry>,
}

/// An agent, with its declaration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CatalogEntry {
    /// The declaration.
    pub spec: Arc<AgentSpec>,
    /// The agent.
    pub agent: CatalogAgent,
    /// What it and everything below it may run, within the rules of its parent.
    pub rules: Rules,
}

/// What runs the turns of an agent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CatalogAgent {
    /// An agent of this process, built from its declaration.
    Local(Agent),
    /// An agent of this process that code has built, as a tool has it: its declaration has its id
    /// and description only.
    Code(Agent),
    /// An agent that runs elsewhere.
    Remote(Arc<dyn Runner>),
}

impl CatalogAgent {
    /// Returns the agent, if it runs in this process.
    pub fn local(&self) -> Option<&Agent> {
        match self {
            Self::Local(agent) | Self::Code(agent) => Some(agent),
            Self::Remote(_) => None,
        }
    }

    pub(crate) fn runner(&self) -> &dyn Runner {
        match self {
            Self::Local(agent) | Self::Code(agent) => agent,
            Self::Remote(runner) => &**runner,
        }
    }
}

impl From<Agent> for CatalogAgent {
    fn from(agent: Agent) -> Self {
        Self::Local(agent)
    }
}

/// Makes what runs the agents that run elsewhere.
pub trait RemoteAgents: fmt::Debug + Send + Sync {
    /// Returns the runner of an agent; `None` for one that runs in this process.
    ///
    /// # Errors
    /// Why the agent can't be used, as a message without secrets.
    fn runner(&self, spec: &AgentSpec) -> Result<Option<Arc<dyn Runner>>, String>;
}

/// Builds agents from their declarations.
pub trait Factory: fmt::Debug + Send + Sync {
    /// Builds one agent with its rules.
    ///
    /// # Errors
    /// The declaration is invalid, or names what does not exist.
    fn entry(&self, spec: AgentSpec) -> Result<CatalogEntry, CatalogError>;
}

impl Catalog {
    /// Adds an agent; a later one of the same id replaces an earlier one.
    pub fn insert(&mut self, spec: AgentSpec, agent: impl Into<CatalogAgent>, rules: Rules) {
        let agent = agent.into();
        self.agents.insert(spec.id.clone(), CatalogEntry { spec: Arc::new(spec), agent, rules });
    }

    /// Adds an agent of another catalog; it replaces one of the same id.
    pub fn keep(&mut self, entry: CatalogEntry) {
        self.agents.insert(entry.spec.id.clone(), entry);
    }

    /// Adds an agent that code has built.
    pub(crate) fn add_code(&mut self, entry: CatalogEntry) {
        self.code.push(entry);
    }

    /// Returns the agent that a tool has with this declaration.
    pub(crate) fn code_of(&self, spec: &Arc<AgentSpec>) -> Option<&CatalogEntry> {
        self.code.iter().find(|entry| Arc::ptr_eq(&entry.spec, spec))
    }

    /// Returns the agents that code has built with this id.
    pub(crate) fn code<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a CatalogEntry> {
        self.code.iter().filter(move |entry| entry.spec.id == id)
    }

    /// Returns all agents that are declared, ordered by id.
    pub fn iter(&self) -> impl Iterator<Item = &CatalogEntry> {
        self.agents.values()
    }

    /// Returns the agent with this id, also a hidden one.
    pub fn get(&self, id: &str) -> Option<&CatalogEntry> {
        self.agents.get(id)
    }

    /// Returns the agents that a model can spawn.
    pub fn offered(&self) -> impl Iterator<Item = &CatalogEntry> {
        self.iter().filter(|entry| entry.spec.is_spawnable())
    }

    /// Returns the agent that code offers as a tool; it may be hidden.
    ///
    /// # Errors
    /// The id is unknown, or the agent can't be a child.
    pub fn callable(&self, id: &str) -> Result<&CatalogEntry, SpawnError> {
        match self.agents.get(id) {
            Some(entry) if entry.spec.mode != Mode::Primary => Ok(entry),
            Some(_) => Err(SpawnError::NotSpawnable { id: id.to_owned() }),
            None => Err(SpawnError::UnknownAgent { id: id.to_owned(), known: self.ids() }),
        }
    }

    fn ids(&self) -> Vec<String> {
        self.agents.keys().cloned().collect()
    }

    /// Returns the agent that a model asks to spawn.
    ///
    /// # Errors
    /// The id is unknown (to a model a hidden one is), or the agent can't be a child.
    pub fn spawnable(&self, id: &str) -> Result<&CatalogEntry, SpawnError> {
        match self.agents.get(id) {
            Some(entry) if entry.spec.is_spawnable() => Ok(entry),
            Some(entry) if !entry.spec.hidden => Err(SpawnError::NotSpawnable { id: id.to_owned() }),
            _ => {
                let known = self.offered().map(|entry| entry.spec.id.clone()).collect();
                Err(SpawnError::UnknownAgent { id: id.to_owned(), known })
            }
        }
    }
}
