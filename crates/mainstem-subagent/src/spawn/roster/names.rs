//! The names by which children are found: labels, and the identities of those that persist.

use dashmap::{DashMap, mapref::entry::Entry};
use mainstem_message::{AgentKey, SessionId};

use crate::error::SpawnError;

/// Each name has one child at most. Labels are compared in lower case.
#[derive(Debug, Default)]
pub(super) struct Names {
    labels: DashMap<String, AgentKey>,
    identities: DashMap<Identity, AgentKey>,
}

/// What a child is found again by whose spec sets `persist_session`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    parent: SessionId,
    agent_id: String,
    label: Option<String>,
    user: Option<String>,
}

impl Identity {
    pub(crate) fn new(parent: &SessionId, agent_id: &str, label: Option<&str>, user: Option<&str>) -> Self {
        let (label, user) = (label.map(str::to_lowercase), user.map(str::to_owned));
        Self { parent: parent.clone(), agent_id: agent_id.to_owned(), label, user }
    }
}

impl Names {
    pub(super) fn claim(&self, label: &str, key: &AgentKey) -> Result<(), SpawnError> {
        match self.labels.entry(label.to_lowercase()) {
            Entry::Vacant(free) => {
                free.insert(key.clone());
                Ok(())
            }
            Entry::Occupied(taken) => {
                Err(SpawnError::LabelTaken { label: label.to_owned(), key: taken.get().to_string() })
            }
        }
    }

    pub(super) fn identify(&self, identity: Identity, key: &AgentKey) -> Result<(), SpawnError> {
        match self.identities.entry(identity) {
            Entry::Vacant(free) => {
                free.insert(key.clone());
                Ok(())
            }
            Entry::Occupied(taken) => Err(SpawnError::StillRunning { key: taken.get().to_string() }),
        }
    }

    /// Sets a label's child.
    pub(super) fn set_label(&self, label: &str, key: &AgentKey) {
        self.labels.insert(label.to_lowercase(), key.clone());
    }

    /// Sets an identity's child.
    pub(super) fn set_identity(&self, identity: Identity, key: &AgentKey) {
        self.identities.insert(identity, key.clone());
    }

    pub(super) fn labelled(&self, label: &str) -> Option<AgentKey> {
        self.labels.get(&label.to_lowercase()).map(|key| key.clone())
    }

    pub(super) fn same(&self, identity: &Identity) -> Option<AgentKey> {
        self.identities.get(identity).map(|key| key.clone())
    }

    /// Frees the names of a child.
    pub(super) fn forget(&self, key: &AgentKey) {
        self.labels.retain(|_, labelled| labelled != key);
        self.identities.retain(|_, same| same != key);
    }
}
