#![doc = include_str!("../README.md")]
//!
//! A process that shares the database is a [`Node`]. It has a lease, which it renews, and writes
//! the sessions that it has opened while the lease lasts. [`Node::journal`] and [`Node::tasks`]
//! are the stores that a harness takes.

mod error;
mod figures;
mod jobs;
mod journal;
mod lease;
mod node;
mod nodes;
mod notices;
mod pool;
mod queue;
mod record;
mod relay;
mod schema;
mod settings;
mod sql;
mod tasks;
mod writer;

pub use error::Error;
pub use journal::PostgresJournal;
pub use node::Node;
pub use nodes::{NodeView, drain, may_serve, nodes};
pub use schema::{Migrated, migrate};
pub use settings::{LEASE, Settings};
pub use tasks::PostgresTaskStore;

// The layers in whose types this one speaks, so that it can be used alone.
pub use mainstem_journal;
pub use mainstem_task;
