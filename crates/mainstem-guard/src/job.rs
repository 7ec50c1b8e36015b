//! What a guard is told.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Limits;

/// A command, and what holds it. It runs in the guard's working directory and environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub(crate) command: Vec<String>,
    pub(crate) rules: Rules,
    pub(crate) network: Network,
    pub(crate) limits: Limits,
    /// Whether the guard makes namespaces, if the system lets it; then, whether it has, and the inner process completes them.
    pub(crate) is_namespaced: bool,
}

impl Default for Job {
    fn default() -> Self {
        let (command, rules) = (Vec::new(), Rules::default());
        Self { command, rules, network: Network::default(), limits: Limits::default(), is_namespaced: true }
    }
}

impl Job {
    /// A program with its arguments, confined to its working directory, with the default limits.
    pub fn new(command: Vec<String>) -> Self {
        Self { command, ..Self::default() }
    }

    /// Sets which files it may use.
    #[must_use]
    pub fn with_rules(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// Sets whether it has a network.
    #[must_use]
    pub fn with_network(self, network: Network) -> Self {
        Self { network, ..self }
    }

    /// Sets whether it gets namespaces of its own, where the system has them; it does by default.
    #[must_use]
    pub fn with_namespaces(self, wanted: bool) -> Self {
        Self { is_namespaced: wanted, ..self }
    }

    /// Sets what it may use up.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }
}

/// Files that a command may use. The working directory is always writable; it is held by its handle, not by its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// What is below these paths can be read and run.
    pub readable: Vec<PathBuf>,
    /// What is below these paths can be changed.
    pub writable: Vec<PathBuf>,
    /// What is below these paths of the working directory, as far as it exists, is read-only. `*` stands for any one component.
    pub protected: Vec<PathBuf>,
}

/// Whether a command has a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "it is on or off")]
pub enum Network {
    /// As this process has it.
    #[default]
    On,
    /// No socket other than those of the file system, which lead to no other machine.
    Off,
}
