//! Why an agent is not in the catalog, or is there without something that it lists.

use mainstem_model::ResolveError;

use crate::error::or_none;

/// Why an agent can't be in the catalog.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// Its model is not known.
    #[error("agent {id:?}: {source}")]
    Model {
        /// Which agent.
        id: String,
        /// Why.
        source: ResolveError,
    },
    /// A pattern of its permissions can't be read.
    #[error("agent {id:?}: permissions: {source}")]
    Permissions {
        /// Which agent.
        id: String,
        /// Why.
        source: mainstem_policy::PatternError,
    },
    /// Its tools clash.
    #[error("agent {id:?}: {source}")]
    Tools {
        /// Which agent.
        id: String,
        /// Why.
        source: mainstem_tool::ToolSetError,
    },
    /// It names a tool that does not exist. The agent is there all the same, without that tool.
    #[error("agent {id:?} {} tool {tool:?}, which does not exist; known: {}", verb(key), known.join(", "))]
    UnknownTool {
        /// Which agent.
        id: String,
        /// Where: `tools` or `disallowed_tools`.
        key: &'static str,
        /// What it lists.
        tool: String,
        /// What there is.
        known: Vec<String>,
    },
    /// It lists a skill that does not exist. The agent is there all the same, without that skill.
    #[error("agent {id:?} lists skill {skill:?}, which does not exist; known: {}", or_none(known))]
    UnknownSkill {
        /// Which agent.
        id: String,
        /// What it lists.
        skill: String,
        /// What there is.
        known: Vec<String>,
    },
    /// It lists an MCP server that is not configured. The agent is there all the same, without that
    /// server's tools.
    #[error("agent {id:?} lists MCP server {server:?}, which is not configured; known: {}", or_none(known))]
    UnknownServer {
        /// Which agent.
        id: String,
        /// What it lists.
        server: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Neither the agent nor any agent that it can spawn has a tool besides spawning. A warning:
    /// the agent is available.
    #[error(
        "agent {id:?} can only spawn, and reaches no agent with a tool to work with; it may spawn: {}",
        or_none(reaches)
    )]
    OnlySpawns {
        /// Which agent.
        id: String,
        /// The agents that it may spawn.
        reaches: Vec<String>,
    },
    /// It asks for a directory, and there is no workspace to find it in.
    #[error("agent {id:?}: workspace.path needs a harness with a workspace, so the agent is left out")]
    NoWorkspace {
        /// Which agent.
        id: String,
    },
    /// It says something that this version does not do, and that would change where the agent
    /// works.
    #[error("agent {id:?}: {key} is not in effect in this version, so the agent is left out")]
    NotInEffect {
        /// Which agent.
        id: String,
        /// What it says.
        key: &'static str,
    },
    /// The form of its answer is none.
    #[error("agent {id:?}: output_schema: {source}")]
    Output {
        /// Which agent.
        id: String,
        /// Why.
        source: mainstem_react::OutputSchemaError,
    },
}

impl CatalogError {
    /// Which agent.
    pub fn agent_id(&self) -> &str {
        match self {
            Self::Model { id, .. }
            | Self::Tools { id, .. }
            | Self::Permissions { id, .. }
            | Self::UnknownTool { id, .. }
            | Self::UnknownSkill { id, .. }
            | Self::UnknownServer { id, .. }
            | Self::OnlySpawns { id, .. }
            | Self::NoWorkspace { id }
            | Self::Output { id, .. }
            | Self::NotInEffect { id, .. } => id,
        }
    }

    /// Whether the agent is in the catalog in spite of it.
    pub fn is_warning(&self) -> bool {
        matches!(
            self,
            Self::UnknownTool { .. }
                | Self::UnknownSkill { .. }
                | Self::UnknownServer { .. }
                | Self::OnlySpawns { .. }
        )
    }
}

fn verb(key: &str) -> &'static str {
    if key == "tools" { "lists" } else { "disallows" }
}
