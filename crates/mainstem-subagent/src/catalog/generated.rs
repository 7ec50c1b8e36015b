//! Agents that a run has written itself, and can spawn.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use mainstem_react::RunContext;

use crate::{catalog::CatalogEntry, error::SpawnError, member::Member};

/// The agents that `agent_generate` has written in a run, beside those of its crew. Part of a
/// [`Member`].
#[derive(Debug, Default)]
pub(crate) struct Drafted(Mutex<BTreeMap<String, CatalogEntry>>);

impl Drafted {
    /// Adds an agent for the rest of the context's run; `false` if the run has no place for it.
    pub(crate) fn add(cx: &RunContext, entry: CatalogEntry) -> bool {
        let drafted = Member::of(cx).map(|member| &member.drafted);
        drafted.map(|drafted| drafted.lock().insert(entry.spec.id.clone(), entry)).is_ok()
    }

    /// The agent that a model asked for, of the run's crew or written since.
    pub(crate) fn spawnable(cx: &RunContext, id: &str) -> Result<CatalogEntry, SpawnError> {
        let Member { crew, drafted, .. } = Member::of(cx)?;
        match crew.catalog.spawnable(id) {
            Ok(entry) => Ok(entry.clone()),
            Err(SpawnError::UnknownAgent { id, mut known }) => {
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
