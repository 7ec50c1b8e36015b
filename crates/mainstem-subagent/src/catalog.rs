//! The agents that can be spawned.

pub(crate) mod error;
pub(crate) mod factory;
pub(crate) mod finding;
pub(crate) mod generate;
pub(crate) mod generated;
pub(crate) mod prompt;
pub mod trust;

use std::{collections::BTreeMap, sync::Arc};

use mainstem_policy::Rules;
use mainstem_react::Agent;
use mainstem_spec::AgentSpec;

use crate::error::SpawnError;

/// Agents by id. Built once from specs, then shared by every session.
#[derive(Clone, Debug, Default)]
pub struct Catalog(BTreeMap<String, CatalogEntry>);

/// An agent and what it was declared as.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CatalogEntry {
    /// The declaration.
    pub spec: Arc<AgentSpec>,
    /// What runs.
    pub agent: Agent,
    /// What it and everything below it may run, besides what holds for its parent.
    pub rules: Rules,
}

impl Catalog {
    /// Adds an agent; a later one of the same id replaces an earlier one.
    pub fn insert(&mut self, spec: AgentSpec, agent: Agent, rules: Rules) {
        self.0.insert(spec.id.clone(), CatalogEntry { spec: Arc::new(spec), agent, rules });
    }

    /// Adds an agent of another catalog; it replaces one of the same id.
    pub fn keep(&mut self, entry: CatalogEntry) {
        self.0.insert(entry.spec.id.clone(), entry);
    }

    /// All of them, ordered by id.
    pub fn iter(&self) -> impl Iterator<Item = &CatalogEntry> {
        self.0.values()
    }

    /// The agent of that id, for code: hidden ones too.
    pub fn get(&self, id: &str) -> Option<&CatalogEntry> {
        self.0.get(id)
    }

    /// The agents that a model is offered.
    pub fn offered(&self) -> impl Iterator<Item = &CatalogEntry> {
        self.iter().filter(|entry| entry.spec.is_spawnable())
    }

    /// The agent that a model asked for.
    ///
    /// # Errors
    /// An id that is not known (a hidden one is not), or one that cannot be a child.
    pub fn spawnable(&self, id: &str) -> Result<&CatalogEntry, SpawnError> {
        match self.0.get(id) {
            Some(entry) if entry.spec.is_spawnable() => Ok(entry),
            Some(entry) if !entry.spec.hidden => Err(SpawnError::NotSpawnable { id: id.to_owned() }),
            _ => {
                let known = self.offered().map(|entry| entry.spec.id.clone()).collect();
                Err(SpawnError::UnknownAgent { id: id.to_owned(), known })
            }
        }
    }
}
