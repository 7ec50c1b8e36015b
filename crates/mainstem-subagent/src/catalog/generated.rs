//! Agents that a run has written and can spawn.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    catalog::{Catalog, CatalogEntry},
    error::SpawnError,
};

/// The agents that `agent_generate` has written in a run, beside those of the run's catalog.
#[derive(Debug, Default)]
pub(crate) struct GeneratedAgents(Mutex<BTreeMap<String, CatalogEntry>>);

impl GeneratedAgents {
    /// Adds an agent for the rest of the run.
    pub(crate) fn add(&self, entry: CatalogEntry) {
        self.lock().insert(entry.spec.id.clone(), entry);
    }

    /// Returns the agent that a model asks to spawn, of the catalog or written since.
    pub(crate) fn spawnable(&self, catalog: &Catalog, id: &str) -> Result<CatalogEntry, SpawnError> {
        match catalog.spawnable(id) {
            Ok(entry) => Ok(entry.clone()),
            Err(SpawnError::UnknownAgent { id, mut known }) => {
                let generated = self.lock();
                known.extend(generated.keys().cloned());
                generated.get(&id).cloned().ok_or(SpawnError::UnknownAgent { id, known })
            }
            Err(error) => Err(error),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, CatalogEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
