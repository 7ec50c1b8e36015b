//! Against processes: MCP servers and model servers, most of them not ours.
#![expect(clippy::unwrap_used, reason = "a test says what it found by failing")]

mod everything;
mod long;
// It looks into /proc.
#[cfg(target_os = "linux")]
mod mcp;
mod models;
mod peer;
