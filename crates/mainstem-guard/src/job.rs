//! The order for a guard.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Limits;

/// A command and its confinement. It runs in the guard's working directory and environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub(crate) command: Vec<String>,
    pub(crate) rules: Rules,
    pub(crate) network: Network,
    pub(crate) limits: Limits,
    /// For the guard: whether to create namespaces, if the system allows it. For the inner process:
    /// whether they exist and are to be completed.
    pub(crate) is_namespaced: bool,
    /// For the inner process: the paths to make read-only.
    #[serde(default)]
    pub(crate) read_only: Vec<PathBuf>,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            rules: Rules::default(),
            network: Network::default(),
            limits: Limits::default(),
            is_namespaced: true,
            read_only: Vec::new(),
        }
    }
}

impl Job {
    /// Creates a program with its arguments, confined to its working directory, with the default
    /// limits.
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

    /// Sets the resources that it may use.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }
}

/// The files that a command may use. The working directory is held by its handle, not by its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// Files below these paths can be read and run.
    pub readable: Vec<PathBuf>,
    /// Files below these paths can be changed.
    pub writable: Vec<PathBuf>,
    /// Whether the working directory is only readable.
    pub is_read_only: bool,
    /// The closed parts of the working directory.
    pub closed: Closed,
}

/// The parts of its working directory that a command may not change, with everything below them.
/// Paths are relative to it.
///
/// Parts that exist when the command starts are read-only, where the system has namespaces; a
/// command that can't be confined so is not started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Closed {
    /// Paths that are closed if they exist. `*` stands for any one component.
    pub existing: Vec<PathBuf>,
    /// Closed paths that a command may not create either: if they exist after its end, they are
    /// moved aside.
    pub reserved: Vec<PathBuf>,
    /// Names that are reserved in every directory. Case does not matter.
    pub names: Vec<String>,
    /// Exceptions: these paths are open, with all below them.
    pub open: Vec<PathBuf>,
}

impl Closed {
    /// Returns `true` if a path, or a directory that it is in, is an exception.
    pub fn is_open(&self, path: &Path) -> bool {
        self.open.iter().any(|open| path.starts_with(open))
    }
}

/// Whether a command has a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "it is on or off")]
pub enum Network {
    /// The network of the parent process.
    #[default]
    On,
    /// No sockets except those of the file system. A server that listens at one of these, such as
    /// Docker or a proxy, may have a network.
    Off,
}
