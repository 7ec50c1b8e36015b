//! Errors before a run begins.

use std::path::PathBuf;

use mainstem_declarations::{DeclarationError, LeaderError};
use mainstem_model::{ModelError, ResolveError};
use mainstem_session::{OpenError, RunActive, RunError};
use mainstem_subagent::CatalogError;
use mainstem_tool::ToolSetError;

/// Any error of this crate, for a `main` that returns one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A harness can't be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A session can't be opened.
    #[error(transparent)]
    Session(#[from] OpenError),
    /// Another run of the session is active.
    #[error(transparent)]
    Active(#[from] RunActive),
    /// A run gave no reply.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A model can't be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A model is unknown.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// No model is configured.
    #[error(
        "no model is configured: set {}, or OPENAI_BASE_URL for a local server, and \
         MAINSTEM_MODEL=<provider>:<model> to choose one",
        crate::provider::variables()
    )]
    NoModel,
}

/// Why a harness can't be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two tools clash, or one has no valid schema.
    #[error(transparent)]
    Tools(#[from] ToolSetError),
    /// A spec or skill built in code is invalid.
    #[error(transparent)]
    Declaration(DeclarationError),
    /// The name of a tenant is invalid, or the harness is a tenant's.
    #[error("tenant {name:?}: {why}")]
    #[non_exhaustive]
    Tenant {
        /// The requested name.
        name: String,
        /// Why it is refused.
        why: &'static str,
    },
    /// An agent declared in code can't be built.
    #[error(transparent)]
    Agent(CatalogError),
    /// The workspace is not a directory.
    #[error("workspace {path:?} is not a directory")]
    #[non_exhaustive]
    Workspace {
        /// The given path.
        path: PathBuf,
    },
    /// The workspace can't be opened.
    #[cfg(feature = "files")]
    #[error(transparent)]
    Open(#[from] mainstem_workspace::WorkspaceError),
    /// The name of an MCP server is invalid.
    #[cfg(feature = "mcp")]
    #[error(transparent)]
    Mcp(#[from] mainstem_mcp::Error),
    /// `agent_generate` has no workspace to write to.
    #[error("agent_generate needs a workspace to write to; name one with `workspace(directory)`")]
    GenerateNowhere,
    /// The shell has no workspace to run in.
    #[cfg(feature = "files")]
    #[error("the shell needs a workspace to run in; name one with `workspace(directory)`")]
    ShellNowhere,
    /// The guard of the shell's commands can't be used.
    #[cfg(feature = "files")]
    #[error("the shell can't be used: {0}")]
    Unguarded(#[source] mainstem_guard::GuardError),
    /// The agent to run can't lead.
    #[error(transparent)]
    Leader(#[from] LeaderError),
}
