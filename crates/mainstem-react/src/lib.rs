//! The reason-act loop and its owned stream.
//!
//! An [`Agent`] asks its model, runs the tools that the model calls, and goes on until there is an answer. Running one gives a
//! [`RunStream`]: poll it and the agent works, drop it and everything stops. The loop decides in two pure modules (what a delta means,
//! what comes next) and waits in one driver; it knows no tasks, no files and no other agents. Those come as tools and [`Middleware`].
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mainstem_tool::ToolSetError> {
//! use futures_util::StreamExt;
//! use mainstem_event::EventStreamExt;
//! use mainstem_model::{ScriptedModel, scripted::Turn};
//! use mainstem_react::Agent;
//!
//! let model = ScriptedModel::new().agent("main", [Turn::new().text("Hello.")]);
//! let agent = Agent::builder("main", model).build()?;
//! let said: String = agent.stream_events("Hi").text().collect().await;
//! assert_eq!(said, "Hello.");
//! # Ok(())
//! # }
//! ```

mod agent;
mod answer_limits;
mod ask;
mod batch;
mod bounded;
mod cancellation;
mod context;
mod drive;
mod ending;
mod error;
mod extensions;
mod facts;
mod gate;
mod meter;
mod middleware;
mod output;
mod output_schema;
mod replay;
mod span;
mod step;
mod stream;
mod turn;

pub use agent::{Agent, AgentBuilder};
pub use answer_limits::AnswerLimits;
pub use ask::Answer;
pub use cancellation::Cancellation;
pub use context::{RunContext, RunContextBuilder};
pub use drive::RunOutcome;
pub use error::AgentError;
pub use facts::Declaration;
pub use gate::{Gate, Passing};
pub use meter::Meter;
pub use middleware::{Middleware, NextModel, NextTool, PendingCall};
pub use output::StructuredOutput;
pub use output_schema::{OutputSchema, OutputSchemaError};
pub use stream::RunStream;
