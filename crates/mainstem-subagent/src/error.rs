//! What can go wrong between agents, in words that a model or a person can act on.

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
    #[error("{key} is still running, so nothing was sent; send with mode steer or interrupt, or later")]
    Busy {
        /// Who.
        key: String,
    },
    /// It is to go on with a child that works on something else.
    #[error("{key} would go on where it stopped, but is still running; use agent_send to tell it more")]
    StillRunning {
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

/// Returns the names in a list, or `none`.
pub(crate) fn or_none(known: &[String]) -> String {
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}
