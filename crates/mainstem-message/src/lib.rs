#![doc = include_str!("../README.md")]
//!
//! These are the nouns that a model, an event and a tool share. The crate knows no I/O and no
//! runtime; everything in it is plain data with a stable JSON form (`camelCase` fields,
//! `snake_case` tags).

mod call;
mod content;
mod error;
mod id;
mod message;
mod rate_limits;
mod usage;

pub use call::{ToolCall, ToolResult, ToolSpec, ToolState};
pub use content::{ContentBlock, DataSource, Opaque, StoredData};
pub use error::Failure;
pub use id::{
    AgentKey, BlockId, ConfirmId, DataId, IdError, JobId, LinkId, MessageId, ReplyId, RunId, SessionId,
    TaskId, TenantName, ToolCallId,
};
pub use message::{Message, Role};
pub use rate_limits::{Allowance, RateLimit, RateLimits};
pub use usage::{StopReason, Usage};
