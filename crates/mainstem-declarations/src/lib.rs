#![doc = include_str!("../README.md")]
//!
//! | item | does |
//! |---|---|
//! | [`Inputs`] | reads the declarations of files and of the program |
//! | [`Reloading`] | keeps what is [built](Build) of them up to date |
//! | [`verdict`] | decides about a problem with an agent: error, fallback or diagnostic |
//! | [`settle`] | applies the verdicts to a catalog |
//! | [`examine`] | describes the problems for a check that runs nothing |
//! | [`leader`] | decides whether an agent can lead a run |
//! | [`Trust`] | decides which parts of files are in effect |
//! | [`working_directory`] | decides which directory an agent works in |
//! | [`Diagnostic`] | one finding: severity, [`Code`], file, line and column, message, help |

mod diagnostic;
mod directory;
mod inputs;
mod leader;
mod reloading;
mod trust;
mod verdict;

pub use diagnostic::{Code, Diagnostic};
pub use directory::{WorkingDirectory, named_directory, working_directory};
pub use inputs::{DeclarationError, Declarations, Inputs};
pub use leader::{LeaderError, leader};
pub use mainstem_spec::{Position, Severity};
pub use reloading::{Build, Lead, Reloading};
pub use trust::Trust;
pub use verdict::{Verdict, examine, settle, verdict};
