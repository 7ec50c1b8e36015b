//! Errors before a command starts.

use std::io;

/// Why a guard can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// No guard program is set.
    #[error(
        "no program guards commands: call `mainstem::guard::init()` first in `main`, or name one by `ShellOptions::with_guard`"
    )]
    NoProgram,
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The guard reports this reason.
    #[error("{0}")]
    Failed(String),
    /// The guard ended without a report.
    #[error(
        "the guard of the command ended too early; its program has to call `mainstem::guard::init()` first in `main`"
    )]
    Silent,
}
