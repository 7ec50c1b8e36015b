//! What can go wrong between agents, in words that a model or a person can act on.

use mainstem_model::ResolveError;

/// Why an agent was not spawned or sent to. The model reads it as the result of its call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The session has no fleet.
    #[error("this session has no subagents")]
    NoFleet,
    /// It would be deeper than agents may be.
    #[error(
        "an agent at depth {depth} can't spawn: agents exist down to depth {max_depth}; do the task yourself"
    )]
    TooDeep {
        /// Where the caller is.
        depth: u16,
        /// The cap.
        max_depth: u16,
    },
    /// No such agent.
    #[error("unknown agent_id {id:?}; known: {}", or_none(known))]
    UnknownAgent {
        /// What was asked for.
        id: String,
        /// What there is.
        known: Vec<String>,
    },
    /// It cannot be a child.
    #[error("agent {id:?} can't be spawned: its mode is primary")]
    NotSpawnable {
        /// Which.
        id: String,
    },
    /// Labels are unique in a session.
    #[error("the label {label:?} is taken by {key}; choose another, or use agent_send to talk to it")]
    LabelTaken {
        /// The label.
        label: String,
        /// Who has it.
        key: String,
    },
    /// Exactly one way to name a child.
    #[error("give exactly one of agent_key and label")]
    NotOne,
    /// No such child.
    #[error("there is no child {name:?}; known: {}", or_none(known))]
    UnknownChild {
        /// What was asked for.
        name: String,
        /// Keys and labels.
        known: Vec<String>,
    },
    /// No such skill, or not for the caller.
    #[error("unknown skill {name:?}; known: {}", or_none(known))]
    UnknownSkill {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// No more background work at once.
    #[error(
        "{max} background tasks are at work, which is the limit; wait for one with task_wait, or stop one with task_cancel"
    )]
    TooManyTasks {
        /// The limit.
        max: usize,
    },
    /// There is no budget left for another agent.
    #[error(transparent)]
    Budget(#[from] mainstem_policy::Exceeded),
    /// The task could not be recorded, read or changed.
    #[error("{}", .0.without_paths())]
    Task(#[from] mainstem_task::TaskError),
    /// It works on something else, and did not end in time.
    #[error("{key} is still at work, so nothing was sent; send with mode steer or interrupt, or later")]
    Busy {
        /// Who.
        key: String,
    },
    /// It is to go on with a child that works on something else.
    #[error("{key} would go on where it stopped, but is still at work; use agent_send to tell it more")]
    AtWork {
        /// Who.
        key: String,
    },
    /// The caller was stopped before there was a place.
    #[error("interrupted before it began")]
    Interrupted,
    /// It was closed.
    #[error("{key} was closed; start another with agent_spawn")]
    Closed {
        /// Who.
        key: String,
    },
    /// It was spawned by an earlier process, and this one can't build its agent.
    #[error(
        "{key} can't go on: agent {id:?} can't be built as it was spawned; start another with agent_spawn"
    )]
    NotRebuilt {
        /// Who.
        key: String,
        /// What it was.
        id: String,
    },
    /// It was asked to stop and has not yet.
    #[error("{key} was asked to stop and has not yet; try again")]
    StillEnding {
        /// Who.
        key: String,
    },
}

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

fn or_none(known: &[String]) -> String {
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}
