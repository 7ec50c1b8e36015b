#![doc = include_str!("../README.md")]
//!
//! A session has a [`Fleet`]: the children that were spawned in it. Each of its runs has a
//! [`Assembly`]: the root, a [`Catalog`] of the agents that can be spawned, their rules and skills.
//! [`Subagents`] is the middleware that gives an agent the tools for it; the tools find both in
//! their context. A child runs inside its parent's tool call, with a context of its own, and its
//! events go into the same log. A child whose call stops waiting goes on as a background task.
//!
//! State (`fleet`, `spawn/roster.rs`, `spawn/child_limit.rs`, `budget/account.rs`) knows nothing of
//! what uses it. `member` is one agent of a fleet in one run, and what an agent does is a method of
//! it: it launches, waits for and sends to children (`spawn`), asks for approval (`approval`), and
//! gets reports of ended tasks (`delivery`). `catalog` builds the agents that can be spawned.

mod approval;
mod assembly;
mod budget;
mod catalog;
mod delivery;
mod error;
mod fleet;
mod member;
mod middleware;
mod options;
mod server_tools;
mod spawn;
mod tools;

pub use approval::{AnswerError, external::ExternalTool};
pub use assembly::Assembly;
pub use budget::account::Spent;
pub use catalog::{
    Catalog, CatalogAgent, CatalogEntry, Factory, RemoteAgents,
    error::CatalogError,
    factory::{AgentFactory, Grantee, Misspelt, ToolGrant, general_purpose, rules},
    finding::closest_model,
    trust,
};
pub use error::SpawnError;
pub use fleet::{Fleet, Limits};
pub use mainstem_event::{Background, ChildStatus, ChildSummary, Decision};
pub use middleware::Subagents;
pub use options::SpawnOptions;
pub use spawn::{
    report::RESTARTED,
    roster::{Carried, recorded::RecordedRoster},
    runner::{ContinuesTurns, Runner, RunningTurn, TurnInput},
};
pub use tools::agent_tool::{AgentTool, IntoTool};
