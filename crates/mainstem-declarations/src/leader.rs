//! Whether an agent can lead a run.

use mainstem_spec::{AgentSpec, closest};
use mainstem_subagent::Catalog;

/// Why an agent can't lead a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaderError {
    /// No such agent is declared.
    #[error("unknown agent {id:?}; known: {}{}", known.join(", "), meant(id, known))]
    #[non_exhaustive]
    Unknown {
        /// The requested id.
        id: String,
        /// The agents that can lead.
        known: Vec<String>,
    },
    /// The agent runs elsewhere.
    #[error("{id:?} can't be run: it runs elsewhere, and can only be spawned")]
    #[non_exhaustive]
    RunsElsewhere {
        /// The requested id.
        id: String,
    },
    /// The agent is only there to be spawned.
    #[error("{id:?} can't be run: its mode is subagent")]
    #[non_exhaustive]
    OnlySpawned {
        /// The requested id.
        id: String,
    },
}

/// Returns the declaration of the agent that leads.
///
/// # Errors
/// The agent is not declared, runs elsewhere, or is only there to be spawned.
pub fn leader<'a>(catalog: &'a Catalog, id: &str) -> Result<&'a AgentSpec, LeaderError> {
    if let Some(entry) = catalog.get(id) {
        if entry.agent.local().is_none() {
            return Err(LeaderError::RunsElsewhere { id: id.to_owned() });
        }
        let spec = Some(&*entry.spec).filter(|spec| spec.is_runnable());
        return spec.ok_or_else(|| LeaderError::OnlySpawned { id: id.to_owned() });
    }
    let can_lead = catalog
        .iter()
        .filter(|entry| entry.spec.is_listed() && entry.spec.is_runnable() && entry.agent.local().is_some());
    let known = can_lead.map(|entry| entry.spec.id.clone()).collect();
    Err(LeaderError::Unknown { id: id.to_owned(), known })
}

/// Returns the end of a message that suggests the nearest known agent.
fn meant(id: &str, known: &[String]) -> String {
    let near = closest(id, known.iter().map(String::as_str));
    near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"))
}

#[cfg(test)]
mod tests;
