#![doc = include_str!("../README.md")]
//!
//! [`RemoteAgent`] is the contract of a protocol: it begins a turn, and returns the remote's events
//! and what steers it. [`MainstemAgent`] speaks that of another Mainstem server. [`RemoteRunner`]
//! makes a child of it: `border` decides what becomes of each event, `graft` has the invocations in
//! the session's log, and `turn` drives. [`Remotes`] makes runners from declarations.

mod agent;
mod agents;
mod border;
mod error;
mod graft;
mod mainstem;
mod runner;
mod turn;

pub use agent::{BegunTurn, RemoteAgent, RemoteControl, RemoteEvent, RemoteTurn};
pub use agents::Remotes;
pub use error::RemoteError;
pub use mainstem::MainstemAgent;
pub use mainstem_outbound::{Host, HostError};
pub use runner::RemoteRunner;
