#![doc = include_str!("../README.md")]
//!
//! A *guard* starts a command: the same program, run once more. The guard holds a pipe to the
//! program. When the pipe closes, because the program asks for
//! the end or because it was killed, the guard kills every process that the command has started,
//! and it reports the end of a command only after the last of them has ended.
//!
//! * [`init`]: makes a program its own guard; the first line of `main`
//! * [`Program`]: the program that guards, and how it is started
//! * [`Job`]: what a guard runs: a command, its [`Rules`] with what is [`Closed`], its [`Network`],
//!   its [`Limits`]
//! * [`Report`]: what a guard reports: its [`Confinement`], an exit, a [`Limit`] that was reached,
//!   what was moved aside
//! * `Supervisor`: on Linux, the like for a program that is spoken to through its streams, such as
//!   an MCP server
//! * [`probe`]: the [`Confinement`] that this machine gives
//!
//! # What each system enforces
//!
//! * all processes of a command end with it, `setsid` and double forks included: Linux: yes; other
//!   Unix: those of its process group
//! * they end when the program is killed: Linux: yes; other Unix: those of its process group
//! * they end when the guard is killed: Linux: where namespaces can be made (root, or unprivileged
//!   user namespaces); other Unix: no
//! * files outside are out of reach: Linux: Linux 5.13 and later, with Landlock; other Unix: no
//! * closed paths that exist are read-only: Linux: where namespaces can be made; other Unix: no
//! * what a command makes at a reserved path is moved aside: Linux: yes; other Unix: no
//! * the network is off: Linux: yes (seccomp, and a namespace where one can be made); other Unix:
//!   the command is refused
//! * limits of memory, CPU time and processes, all processes together: Linux: yes; other Unix: CPU
//!   time, each process
//! * limit of a file's size: Linux: yes; other Unix: yes

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
pub mod size;
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
