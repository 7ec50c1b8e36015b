#![doc = include_str!("../README.md")]
//!
//! A session has a [`Fleet`]: a roster of the children that were spawned. Each of its runs has a
//! [`Crew`]: the root, a [`Catalog`] of the agents that can be spawned, their rules and skills.
//! [`Subagents`] is the middleware that gives an agent the tools for it; the tools find both in
//! their context. A child runs inside its parent's tool call, with a context of its own; nothing is
//! forwarded. What its parent no longer waits for goes on as a background task.

mod approval;
mod budget;
mod catalog;
mod crew;
mod delivery;
mod error;
mod fleet;
mod member;
mod middleware;
mod options;
mod spawn;
mod tools;

pub use approval::{AnswerError, external::ExternalTool};
pub use budget::account::Spent;
pub use catalog::{
    Catalog, CatalogEntry, Factory,
    error::CatalogError,
    factory::{AgentFactory, Grantee, ToolGrant, rules},
    trust,
};
pub use crew::{Crew, Crews};
pub use error::SpawnError;
pub use fleet::{Fleet, Limits};
pub use mainstem_event::{Background, ChildStatus, ChildSummary, Decision};
pub use middleware::Subagents;
pub use options::SpawnOptions;
pub use spawn::{
    report::RESTARTED,
    roster::{Carried, recorded::RecordedRoster},
};
pub use tools::agent_tool::{AgentTool, IntoTool};
