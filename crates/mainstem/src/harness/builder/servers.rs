//! MCP servers: those of the program, and those that agents declare for themselves.

#[cfg(feature = "mcp")]
mod mcp;
#[cfg(not(feature = "mcp"))]
mod none;

#[cfg(feature = "mcp")]
pub(super) use self::mcp::Declared;
#[cfg(feature = "mcp")]
pub(in crate::harness) use self::mcp::Servers;
#[cfg(not(feature = "mcp"))]
pub(super) use self::none::Declared;
#[cfg(not(feature = "mcp"))]
pub(in crate::harness) use self::none::Servers;
