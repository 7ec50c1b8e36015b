//! Why an agent is not in the catalog, or is there without something that it lists.

use mainstem_model::ResolveError;
use mainstem_spec::AgentSpec;

use crate::error::or_none;

/// Why an agent is not in the catalog, or lacks something that it lists.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// Its model is unknown.
    #[error("agent {id:?}: {source}")]
    Model {
        /// The agent.
        id: String,
        /// Why.
        source: ResolveError,
    },
    /// A pattern of its permissions is invalid.
    #[error("agent {id:?}: permissions: {source}")]
    Permissions {
        /// The agent.
        id: String,
        /// Why.
        source: mainstem_policy::PatternError,
    },
    /// Two of its tools have the same name.
    #[error("agent {id:?}: {source}")]
    Tools {
        /// The agent.
        id: String,
        /// Why.
        source: mainstem_tool::ToolSetError,
    },
    /// It names a tool that does not exist. A warning: the agent lacks that tool.
    #[error("agent {id:?} {} tool {tool:?}, which does not exist; known: {}", verb(key), known.join(", "))]
    UnknownTool {
        /// The agent.
        id: String,
        /// `tools` or `disallowed_tools`.
        key: &'static str,
        /// The name that it lists.
        tool: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// It lists a skill that does not exist. A warning: the agent lacks that skill.
    #[error("agent {id:?} lists skill {skill:?}, which does not exist; known: {}", or_none(known))]
    UnknownSkill {
        /// The agent.
        id: String,
        /// The name that it lists.
        skill: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// It lists an MCP server that is not configured. A warning: the agent lacks that server's
    /// tools.
    #[error("agent {id:?} lists MCP server {server:?}, which is not configured; known: {}", or_none(known))]
    UnknownServer {
        /// The agent.
        id: String,
        /// The name that it lists.
        server: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// Neither the agent nor any agent that it can spawn has a tool besides spawning. A warning:
    /// the agent is available.
    #[error(
        "agent {id:?} can only spawn, and reaches no agent with a tool to work with; it may spawn: {}",
        or_none(reaches)
    )]
    OnlySpawns {
        /// The agent.
        id: String,
        /// The agents that it may spawn.
        reaches: Vec<String>,
    },
    /// The agent needs a directory of a workspace, and the harness has none.
    #[error("agent {id:?}: workspace.path needs a harness with a workspace, so the agent is left out")]
    NoWorkspace {
        /// The agent.
        id: String,
    },
    /// It has a key that this version does not implement and without which the agent would run
    /// somewhere else.
    #[error("agent {id:?}: {key} is not in effect in this version, so the agent is left out")]
    NotInEffect {
        /// The agent.
        id: String,
        /// The key.
        key: &'static str,
    },
    /// Its output schema is invalid.
    #[error("agent {id:?}: output_schema: {source}")]
    Output {
        /// The agent.
        id: String,
        /// Why.
        source: mainstem_react::OutputSchemaError,
    },
}

impl CatalogError {
    /// Returns the error of a spec that has a key which this version does not implement and which
    /// can't be ignored; `None` for other specs.
    #[must_use]
    pub fn not_in_effect(spec: &AgentSpec) -> Option<Self> {
        spec.url.as_ref().map(|_| Self::NotInEffect { id: spec.id.clone(), key: "url" })
    }

    /// Returns the agent.
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

    /// Returns `true` if the agent is in the catalog nevertheless.
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
