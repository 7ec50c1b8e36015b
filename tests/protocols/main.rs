//! Protocols of others: their official clients read our server, and their servers are remote agents
//! of ours.
#![expect(clippy::unwrap_used, reason = "a test says what it found by failing")]

mod a2a;
mod agentscope;
mod agui;
mod child;
#[path = "../killed.rs"]
mod killed;
mod langgraph;
mod mcp;
mod proxy;
mod restart;
mod support;
