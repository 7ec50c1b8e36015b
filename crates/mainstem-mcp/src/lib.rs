#![doc = include_str!("../README.md")]
//!
//! A [`Server`] declares how a server is reached: a command that is started and spoken to over its
//! stdin and stdout, or an address for streamable HTTP. A [`Client`] is the connection: one process
//! or one HTTP session, however many agents use it. It is a
//! [`ToolSource`](mainstem_tool::ToolSource): its tools are available once the server has listed
//! them, change when the server announces a change, and are named `mcp__<server>__<tool>`.
//!
//! * an agent that has it calls a model: the server is started, if it is not running, and its tools
//!   are listed
//! * it says how far a call is: [`ToolContext::progress`](mainstem_tool::ToolContext::progress):
//!   live in the stream, and part of the result
//! * a call is cancelled or dropped: the server is told, by `notifications/cancelled`
//! * it dies: calls that wait become error results that say so; the next call starts it anew
//! * the last handle goes, or [`Client::shutdown`]: stdin is closed, then `SIGTERM`, then
//!   `SIGKILL`, for its whole process group
//!
//! [`AgentServer`] is the other direction: agents as the tools of an MCP server.
//!
//! A server sees `PATH`, `HOME` and the like of this process's environment, and what its
//! declaration passes on: never the keys of models.

mod agents;
mod call;
mod client;
mod content;
mod driver;
mod error;
mod name;
mod notifications;
mod open;
mod process;
mod server;
mod tool;

pub use agents::{AgentHost, AgentServer, Body, OfferedAgent, ServeError};
pub use client::Client;
pub use error::Error;
pub use mainstem_outbound::{Host, Reach};
pub use server::Server;
