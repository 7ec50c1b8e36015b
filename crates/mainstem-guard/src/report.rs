//! What a guard reports, a line of JSON each.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Limit;

/// A line of a guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Report {
    /// The command starts, held by this.
    Started(Confinement),
    /// The command exited with a status.
    Exited(i32),
    /// The command was killed by a signal.
    Killed(i32),
    /// The command was ended because its processes reached a limit.
    Reached(Limit),
    /// The command has made something at a [closed](crate::Closed) path, which is elsewhere now.
    SetAside {
        /// Where it was.
        path: String,
        /// Where it is.
        to: String,
    },
    /// The command could not be started or watched.
    Failed(String),
}

impl Report {
    /// The report of a line; `None` for lines that are something else.
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

/// What holds a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Confinement {
    /// How far the kernel keeps it from other files.
    pub files: Files,
    /// Whether its processes have a namespace of their own, which ends with the guard even if the
    /// guard is killed.
    pub has_own_processes: bool,
    /// Whether the protected paths are read-only.
    pub is_protecting: bool,
}

/// How far the kernel keeps a command from other files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "as Landlock has it")]
pub enum Files {
    /// All rules hold.
    Confined,
    /// An older kernel holds some of the rules.
    Partly,
    /// Nothing holds.
    #[default]
    Free,
}

impl Files {
    /// What a model should know of it.
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
