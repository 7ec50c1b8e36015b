#![doc = include_str!("../README.md")]
//!
//! Most tools are a function and [`tool_fn`]: the schema comes from the argument type, and the
//! model gets an error with a JSON pointer for arguments that do not fit.

mod artifact;
mod blocking;
mod context;
mod error;
mod host;
mod output;
mod poll_on_wake;
mod progress;
mod set;
mod source;
mod sync;
mod tool;
mod typed;

pub use artifact::{Artifacts, MAX_RESULT_BYTES};
pub use async_trait::async_trait;
pub use blocking::{Stop, blocking};
pub use context::ToolContext;
pub use error::ToolError;
pub use host::ToolHost;
pub use mainstem_message::{ToolSpec, ToolState};
pub use output::{Json, ToolOutput};
pub use poll_on_wake::{PollOnWake, unless};
pub use progress::Progress;
pub use set::{ToolSet, ToolSetError};
pub use source::ToolSource;
pub use tool::Tool;
pub use typed::{TypedTool, schema_of, tool_fn};

// The layers in whose types this one speaks, so that it can be used alone.
pub use mainstem_event as event;
pub use mainstem_message as message;
pub use mainstem_schema as schema;
// The crates whose traits the arguments of a tool implement.
pub use schemars;
pub use serde;
pub use serde_json;
