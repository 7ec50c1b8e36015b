//! Agents that a run has written itself, and can spawn.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mainstem_react::RunContext;

use crate::{CatalogEntry, Crew, SpawnError};

/// The agents that `agent_generate` has written in a run, beside those of its [`Crew`]. Belongs into the context of the run, as an
/// extension.
#[derive(Debug, Default)]
pub struct Drafted(Mutex<BTreeMap<String, CatalogEntry>>);

impl Drafted {
    /// Adds an agent for the rest of the context's run; `false` if the run has no place for it.
    pub(crate) fn add(cx: &RunContext, entry: CatalogEntry) -> bool {
        let drafted = cx.get::<Self>();
        drafted.iter().for_each(|drafted| _ = drafted.lock().insert(entry.spec.id.clone(), entry.clone()));
        drafted.is_some()
    }

    /// The agent that a model asked for, of the run's crew or written since.
    pub(crate) fn spawnable(cx: &RunContext, id: &str) -> Result<CatalogEntry, SpawnError> {
        let crew = Crew::of(cx)?;
        let drafted: Option<Arc<Self>> = cx.get();
        match crew.catalog.spawnable(id) {
            Ok(entry) => Ok(entry.clone()),
            Err(SpawnError::UnknownAgent { id, mut known }) => {
                let Some(drafted) = drafted else { return Err(SpawnError::UnknownAgent { id, known }) };
                let drafted = drafted.lock();
                known.extend(drafted.keys().cloned());
                drafted.get(&id).cloned().ok_or(SpawnError::UnknownAgent { id, known })
            }
            Err(error) => Err(error),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, CatalogEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
