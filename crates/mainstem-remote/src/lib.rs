#![doc = include_str!("../README.md")]
//!
//! [`RemoteAgent`] is the contract of a protocol: it begins a turn, and returns the remote's events
//! and what steers it. [`MainstemAgent`] speaks that of another Mainstem server,
//! [`AgentScopeAgent`] and [`AgentScopeServiceAgent`] AgentScope's two, [`A2aAgent`] Agent2Agent,
//! [`LangGraphAgent`] LangGraph's. [`RemoteRunner`] makes a child of it: `admission` decides which
//! events are emitted, `invocations` has the contexts that emit them, and `turn` drives.
//! [`Remotes`] makes runners from declarations.

mod a2a;
mod admission;
mod agent;
mod agents;
mod agentscope;
mod declaration;
mod error;
mod http;
mod invocations;
mod langgraph;
mod mainstem;
mod probe;
mod runner;
mod trace_context;
mod translation;
mod turn;

pub use a2a::A2aAgent;
pub use agent::{BegunTurn, RemoteAgent, RemoteControl, RemoteEvent, RemoteTurn};
pub use agents::{RemoteDescription, Remotes};
pub use agentscope::{AgentScopeAgent, AgentScopeServiceAgent};
pub use error::RemoteError;
pub use langgraph::LangGraphAgent;
pub use mainstem::MainstemAgent;
pub use mainstem_outbound::{Host, HostError, Reach};
pub use runner::RemoteRunner;
pub use trace_context::TraceContext;
pub use translation::Translation;
