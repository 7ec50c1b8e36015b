//! Reports of a guard, a line of JSON each.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Limit;

/// A report of a guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Report {
    /// The command is about to start, with this confinement.
    Started(Confinement),
    /// The command exited with a status.
    Exited(i32),
    /// The command was killed by a signal.
    Killed(i32),
    /// The command was ended because its processes reached a limit.
    Reached(Limit),
    /// The command has created something at a [closed](crate::Closed) path, which was moved aside.
    SetAside {
        /// The closed path.
        path: String,
        /// The new path.
        to: String,
    },
    /// The command could not be started or watched.
    Failed(String),
}

impl Report {
    /// Returns the report of a line; `None` for lines that are something else.
    pub fn parse(line: &[u8]) -> Option<Self> {
        parse(line)
    }
}

#[cfg(unix)]
fn parse(line: &[u8]) -> Option<Report> {
    serde_json::from_slice(line).ok()
}

#[cfg(not(unix))]
fn parse(_: &[u8]) -> Option<Report> {
    None
}

/// The confinement of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Confinement {
    /// Whether the kernel confines it to its files.
    pub files: Files,
    /// Whether its processes have a namespace of their own, which ends with the guard even if the
    /// guard is killed.
    pub has_own_processes: bool,
    /// Whether the protected paths are read-only.
    pub is_protecting: bool,
}

/// Whether the kernel confines a command to its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "as Landlock has it")]
pub enum Files {
    /// All rules are in force.
    Confined,
    /// Some of the rules are in force: the kernel is older.
    Partly,
    /// No rules are in force.
    #[default]
    Free,
}

impl Files {
    /// Returns a note for the model; `None` if the command is fully confined.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Self::Confined => None,
            Self::Partly => Some("confined only in part by the kernel"),
            Self::Free => Some("not confined by the kernel"),
        }
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.files {
            Files::Confined => "files confined by Landlock",
            Files::Partly => "files confined in part (an older Landlock)",
            Files::Free => "files not confined (no Landlock)",
        })?;
        f.write_str(if self.has_own_processes {
            ", own process namespace"
        } else {
            ", no process namespace"
        })?;
        f.write_str(if self.is_protecting {
            ", protected paths read-only"
        } else {
            ", protected paths writable"
        })
    }
}
