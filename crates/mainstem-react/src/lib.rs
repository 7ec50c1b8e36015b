#![doc = include_str!("../README.md")]
//!
//! An [`Agent`] calls its model, runs the tools that the model calls, and continues until it has an
//! answer. Running one returns a [`RunStream`]: polling it drives the agent, dropping it stops
//! everything. The loop decides in two pure modules (what a delta means, what comes next) and waits
//! in one driver; it knows no tasks, files or other agents. Those come as tools and [`Middleware`].

mod agent;
mod answer_limits;
mod ask;
mod batch;
mod bounded;
mod bracket;
mod cancellation;
mod compaction;
mod context;
mod drive;
mod error;
mod extensions;
mod facts;
mod gate;
mod meter;
mod middleware;
mod output;
mod output_schema;
mod repetition;
mod replay;
mod span;
mod step;
mod stream;
mod turn;

pub use agent::{Agent, AgentBuilder};
pub use answer_limits::AnswerLimits;
pub use ask::Answer;
pub use bracket::Bracket;
pub use cancellation::Cancellation;
pub use compaction::Compaction;
pub use context::{RunContext, RunContextBuilder};
pub use drive::RunOutcome;
pub use error::AgentError;
pub use facts::Declaration;
pub use gate::{Gate, Passing};
pub use meter::Meter;
pub use middleware::{Middleware, NextModel, NextTool, PendingCall};
pub use output::StructuredOutput;
pub use output_schema::{OutputSchema, OutputSchemaError};
pub use repetition::RepetitionLimits;
pub use stream::RunStream;

// The layers in whose types this one speaks, so that it can be used alone.
pub use mainstem_event as event;
pub use mainstem_message as message;
pub use mainstem_model as model;
pub use mainstem_tool as tool;
