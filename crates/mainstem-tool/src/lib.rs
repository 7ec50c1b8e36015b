//! The contract with a tool: [`Tool`], the [`ToolContext`] of each call, and the [`ToolSet`] of an agent.
//!
//! Most tools are a function and [`tool_fn`]: the schema comes from the argument type, and arguments that do not fit go back to the model
//! with a JSON pointer to what is wrong.
//!
//! ```
//! use mainstem_tool::{ToolError, tool_fn};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Search {
//!     /// What to look for.
//!     query: String,
//! }
//!
//! let search = tool_fn("search", "Search the corpus", |cx, args: Search| async move {
//!     cx.progress(format!("looking for {}\n", args.query)).await;
//!     Ok::<_, ToolError>("42 hits")
//! });
//! # let _ = search;
//! ```

mod artifact;
mod blocking;
mod context;
mod error;
mod host;
mod output;
mod progress;
mod seldom;
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
pub use progress::Progress;
pub use seldom::{Seldom, unless};
pub use set::{ToolSet, ToolSetError};
pub use source::ToolSource;
pub use tool::Tool;
pub use typed::{TypedTool, schema_of, tool_fn};
