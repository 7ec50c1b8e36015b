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
mod data;
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
pub use bounded::artifact_path;
pub use bracket::Bracket;
pub use cancellation::Cancellation;
pub use compaction::Compaction;
pub use context::{RunContext, RunContextBuilder};
pub use data::{DataStore, store_data};
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
// What a program with one agent uses besides, so that it depends on this crate alone.
pub use futures_util;
pub use mainstem_tool::{schemars, serde, serde_json};

/// What most programs with one agent use.
///
/// Arguments of tools derive traits of `serde` and `schemars`, which this crate re-exports: the
/// attributes `#[serde(crate = "…")]` and `#[schemars(crate = "…")]` name the re-exports if the
/// program does not depend on these crates itself.
///
/// ```
/// use mainstem_react::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(crate = "mainstem_react::serde")]
/// #[schemars(crate = "mainstem_react::schemars")]
/// struct Add {
///     left: i64,
///     right: i64,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mainstem_react::tool::ToolSetError> {
/// let add = tool_fn("add", "Adds two numbers", |_cx, Add { left, right }| async move {
///     Ok::<_, ToolError>((left + right).to_string())
/// });
/// let model = ScriptedModel::new().agent("main", [
///     Turn::new().call("add", json!({ "left": 2, "right": 3 })),
///     Turn::new().text("It is 5."),
/// ]);
/// let agent = Agent::builder("main", model).with_tool(add).build()?;
/// let text: String = agent.stream_events("What is 2 + 3?").text().collect().await;
/// assert_eq!(text, "It is 5.");
/// # Ok(())
/// # }
/// ```
pub mod prelude {
    pub use futures_util::StreamExt as _;
    pub use mainstem_event::{AgentEvent, EventKind, EventStreamExt as _};
    pub use mainstem_message::{Message, Role};
    pub use mainstem_model::{Model, ScriptedModel, scripted::Turn};
    pub use mainstem_tool::{Json, Tool, ToolContext, ToolError, ToolOutput, async_trait, tool_fn};
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
    pub use serde_json::json;

    pub use crate::{Agent, Middleware, RunContext, RunStream};
}
