#![doc = include_str!("../README.md")]
//!
//! A session has a [`Fleet`]: a roster of the children that were spawned. Each of its runs has a
//! [`Crew`]: the root, a [`Catalog`] of the agents that can be spawned, their rules and skills.
//! [`Subagents`] is the middleware that gives an agent the tools for it; the tools find both in
//! their context. A child runs inside its parent's tool call, with a context of its own; nothing is
//! forwarded. What its parent no longer waits for goes on as a background task.

mod agent_tool;
mod attend;
mod catalog;
mod crew;
mod deadline;
mod delivery;
mod drafted;
mod error;
mod external;
mod factory;
mod finding;
mod fleet;
mod guard;
mod idle;
mod inbox;
mod launch;
mod lineage;
mod member;
mod middleware;
mod options;
mod people;
mod prompt;
mod report;
mod returning;
mod roster;
mod send;
mod slots;
mod spending;
mod start_order;
mod tools;
pub mod trust;
mod versions;

pub use agent_tool::{AgentTool, IntoTool};
pub use catalog::{Catalog, CatalogEntry};
pub use crew::{Crew, Crews};
pub use error::{CatalogError, SpawnError};
pub use external::ExternalTool;
pub use factory::{AgentFactory, Audience, Offer, rules};
pub use fleet::{Fleet, Limits};
pub use mainstem_event::{Background, ChildStatus, ChildSummary, Decision};
pub use middleware::Subagents;
pub use options::SpawnOptions;
pub use people::AnswerError;
pub use report::RESTARTED;
pub use returning::Returning;
pub use roster::Carried;
pub use spending::Spent;
