//! Why a server can't be used.

/// What is wrong with a server or its declaration. `Display` never shows a value that came from the
/// environment.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No server can be called that.
    #[error("{name:?} is no name for an MCP server: use at most 32 letters, digits, - and single _")]
    Name {
        /// What was given.
        name: String,
    },
    /// It says nothing, or too much, about how the server is reached.
    #[error("{0}")]
    Declaration(String),
    /// A variable that the declaration uses is not set.
    #[error("the environment has no variable {name}; set it, or write ${{{name}:-default}}")]
    Variable {
        /// Which.
        name: String,
    },
    /// It did not get as far as to list its tools.
    #[error("the MCP server {server:?} can't be used: {why}")]
    Start {
        /// Which.
        server: String,
        /// What happened, and what it said.
        why: String,
    },
    /// It has ended. The next call of one of its tools starts it anew.
    #[error("the MCP server {server:?} has ended: {why}")]
    Ended {
        /// Which.
        server: String,
        /// How, and what it said last.
        why: String,
    },
    /// [`Client::shutdown`](crate::Client::shutdown) was called.
    #[error("the MCP server {server:?} was shut down")]
    ShutDown {
        /// Which.
        server: String,
    },
}
