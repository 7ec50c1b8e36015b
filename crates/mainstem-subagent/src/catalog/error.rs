//! Why an agent is not in the catalog, or is there without something that it lists.

use mainstem_model::ResolveError;

use crate::error::{SpawnError, or_none};

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
    /// It names a tool that does not exist. A warning: the agent lacks that tool, or the rule is
    /// about no call.
    #[error("agent {id:?} {} tool {tool:?}, which does not exist; known: {}", verb(key), known.join(", "))]
    UnknownTool {
        /// The agent.
        id: String,
        /// `tools`, `disallowed_tools` or `permissions`.
        key: &'static str,
        /// The name that it lists.
        tool: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// A rule of it names an argument that the tool does not have. A warning: the rule is about no
    /// call.
    #[error(
        "agent {id:?} has the rule {pattern:?} about argument {argument:?}, which its tool does not have; known: {}",
        known.join(", ")
    )]
    #[non_exhaustive]
    UnknownArgument {
        /// The agent.
        id: String,
        /// The rule.
        pattern: String,
        /// The name in the rule.
        argument: String,
        /// The arguments that the tool has.
        known: Vec<String>,
    },
    /// It names a tool that this program has and that is off. A warning: the agent lacks that tool.
    #[error("agent {id:?} {} tool {tool:?}, which is off; {remedy}", verb(key))]
    #[non_exhaustive]
    ToolOff {
        /// The agent.
        id: String,
        /// `tools` or `disallowed_tools`.
        key: &'static str,
        /// The name that it lists.
        tool: String,
        /// How to turn it on.
        remedy: String,
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
    /// A [tool](crate::AgentTool) can't start it: it does not exist, or can't be a child. A
    /// warning: calls of the tool fail until it can.
    #[error("tool {tool:?} can't start its agent: {source}")]
    AgentTool {
        /// The agent.
        id: String,
        /// The tool.
        tool: String,
        /// Why.
        source: Box<SpawnError>,
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
    /// It has a `url`, and nothing here runs remote agents.
    #[error("agent {id:?}: url: this program runs no remote agents, so the agent is left out")]
    #[non_exhaustive]
    NoRemotes {
        /// The agent.
        id: String,
    },
    /// Its `url` or its `headers` can't be used.
    #[error("agent {id:?}: url: {reason}")]
    #[non_exhaustive]
    Remote {
        /// The agent.
        id: String,
        /// The reason.
        reason: String,
    },
    /// It has a `url`, and an agent of this process is required, such as one that leads a run.
    #[error("agent {id:?} runs elsewhere, at its url; it can only be spawned")]
    #[non_exhaustive]
    RunsElsewhere {
        /// The agent.
        id: String,
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
    /// Returns the agent.
    pub fn agent_id(&self) -> &str {
        match self {
            Self::Model { id, .. }
            | Self::Tools { id, .. }
            | Self::Permissions { id, .. }
            | Self::UnknownTool { id, .. }
            | Self::UnknownArgument { id, .. }
            | Self::ToolOff { id, .. }
            | Self::UnknownSkill { id, .. }
            | Self::UnknownServer { id, .. }
            | Self::AgentTool { id, .. }
            | Self::OnlySpawns { id, .. }
            | Self::NoWorkspace { id }
            | Self::Output { id, .. }
            | Self::NoRemotes { id }
            | Self::Remote { id, .. }
            | Self::RunsElsewhere { id } => id,
        }
    }

    /// Returns `true` if the agent is in the catalog nevertheless.
    pub fn is_warning(&self) -> bool {
        matches!(
            self,
            Self::UnknownTool { .. }
                | Self::UnknownArgument { .. }
                | Self::ToolOff { .. }
                | Self::UnknownSkill { .. }
                | Self::UnknownServer { .. }
                | Self::AgentTool { .. }
                | Self::OnlySpawns { .. }
        )
    }
}

fn verb(key: &str) -> &'static str {
    match key {
        "tools" => "lists",
        "permissions" => "has a rule about",
        _ => "disallows",
    }
}
