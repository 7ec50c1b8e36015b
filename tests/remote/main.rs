//! One binary of integration tests: a harness that is reached over HTTP, and agents that are.
#![expect(clippy::unwrap_used, reason = "a test says what it found by failing")]

mod agent_tools;
mod agentscope;
mod anywhere;
mod broken;
mod busy;
mod carried;
mod chain;
mod contract;
mod fallback;
mod http;
#[path = "../killed.rs"]
mod killed;
mod killed_link;
mod mcp_agents;
mod probe;
mod protocols;
mod random;
mod restart;
mod speaks;
mod steering;
#[path = "../common.rs"]
mod support;
mod taken_back;
