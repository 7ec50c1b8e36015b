//! The built binary, from outside: what it prints, how it exits, what a server sees of it, how it
//! looks on a terminal.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod addresses;
mod agents;
#[cfg(unix)]
mod background;
#[cfg(unix)]
mod book;
mod config;
mod edges;
mod escapes;
#[cfg(unix)]
mod examples;
mod exits;
#[cfg(target_os = "linux")]
mod exports;
mod faults;
mod files;
#[cfg(unix)]
mod http2;
mod jobs;
#[cfg(unix)]
mod kills;
mod mcp;
#[cfg(unix)]
mod mcp_agents;
mod messages;
mod nodes;
mod outputs;
#[cfg(unix)]
mod pictures;
mod provider;
mod providers;
mod remote;
mod replay;
#[cfg(unix)]
mod returns;
mod serve;
mod served;
mod server;
mod server_variable;
mod session;
mod session_files;
#[cfg(target_os = "linux")]
mod shell;
#[cfg(unix)]
mod signals;
mod support;
#[cfg(unix)]
mod talk;
mod telemetry;
#[cfg(unix)]
mod terminal;
mod trust;
#[cfg(unix)]
mod watched;
#[cfg(target_os = "linux")]
mod web;
