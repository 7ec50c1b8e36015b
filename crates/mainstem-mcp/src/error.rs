//! Errors of servers.

/// What is wrong with a server or its declaration. `Display` never shows a value that came from the
/// environment.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name is not valid for a server.
    #[error("{name:?} is not a valid name for an MCP server: use at most 32 letters, digits, - and single _")]
    #[non_exhaustive]
    Name {
        /// The name.
        name: String,
    },
    /// The declaration lacks the way to reach the server, or has two.
    #[error("{0}")]
    Declaration(String),
    /// It failed before it listed its tools.
    #[error("the MCP server {server:?} can't be used: {why}")]
    #[non_exhaustive]
    Start {
        /// The server.
        server: String,
        /// The reason, with the end of its stderr.
        why: String,
    },
    /// It has ended. The next call of one of its tools starts it anew.
    #[error("the MCP server {server:?} has ended: {why}")]
    #[non_exhaustive]
    Ended {
        /// The server.
        server: String,
        /// The reason, with the end of its stderr.
        why: String,
    },
    /// [`Client::shutdown`](crate::Client::shutdown) was called.
    #[error("the MCP server {server:?} was shut down")]
    #[non_exhaustive]
    ShutDown {
        /// The server.
        server: String,
    },
}
