#![doc = include_str!("../README.md")]
//!
//! A command is not started by the program itself but by a *guard*: the same program, run once
//! more. The guard holds a pipe to the program. When the pipe closes, because the program asks for
//! the end or because it was killed, the guard kills every process that the command has started,
//! and it reports the end of a command only after the last of them has ended.
//!
//! | item | does |
//! |---|---|
//! | [`init`] | makes a program its own guard; the first line of `main` |
//! | [`Program`] | the program that guards, and how it is started |
//! | [`Job`] | what a guard runs: a command, its [`Rules`] with what is [`Closed`], its [`Network`], its [`Limits`] |
//! | [`Report`] | what a guard reports: its [`Confinement`], an exit, a [`Limit`] that was reached, what was moved aside |
//! | `Supervisor` | on Linux, the like for a program that is spoken to through its streams, such as an MCP server |
//! | [`probe`] | the [`Confinement`] that this machine gives |
//!
//! # What holds where
//!
//! | | Linux | other Unix |
//! |---|---|---|
//! | all processes of a command end with it, `setsid` and double forks included | yes | those of its process group |
//! | they end when the program is killed | yes | those of its process group |
//! | they end when the guard is killed | where namespaces can be made (root, or unprivileged user namespaces) | no |
//! | files outside are out of reach | Linux 5.13 and later, with Landlock | no |
//! | closed paths that exist are read-only | where namespaces can be made | no |
//! | what a command makes at a reserved path is moved aside | yes | no |
//! | the network is off | yes (seccomp, and a namespace where one can be made) | the command is refused |
//! | limits of memory, CPU time and processes, all processes together | yes | CPU time, each process |
//! | limit of a file's size | yes | yes |

#[cfg(target_os = "linux")]
mod closed;
#[cfg(target_os = "linux")]
mod confine;
mod error;
#[cfg(unix)]
mod guard;
#[cfg(unix)]
mod inner;
mod job;
mod limits;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod network;
#[cfg(unix)]
mod program;
mod report;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod rig;
mod size;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(unix)]
mod tree;

#[cfg(unix)]
pub use self::program::{Program, init, probe, take_role};
#[cfg(target_os = "linux")]
pub use self::supervisor::Supervisor;
pub use self::{
    error::GuardError,
    job::{Closed, Job, Network, Rules},
    limits::{Limit, Limits},
    report::{Confinement, Files, Report},
};
