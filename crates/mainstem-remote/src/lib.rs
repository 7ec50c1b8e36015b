#![doc = include_str!("../README.md")]
//!
//! [`RemoteAgent`] is the contract of a protocol: it begins a turn, and returns the remote's events
//! and what steers it. [`MainstemAgent`] speaks that of another Mainstem server. [`RemoteRunner`]
//! makes a child of it: `admission` decides which events are emitted, `invocations` has the
//! contexts that emit them, and `turn` drives. [`Remotes`] makes runners from declarations.

mod admission;
mod agent;
mod agents;
mod error;
mod http;
mod invocations;
mod langgraph;
mod mainstem;
mod runner;
mod translation;
mod turn;

pub use agent::{BegunTurn, RemoteAgent, RemoteControl, RemoteEvent, RemoteTurn};
pub use agents::Remotes;
pub use error::RemoteError;
pub use langgraph::LangGraphAgent;
pub use mainstem::MainstemAgent;
pub use mainstem_outbound::{Host, HostError};
pub use runner::RemoteRunner;
pub use translation::Translation;
