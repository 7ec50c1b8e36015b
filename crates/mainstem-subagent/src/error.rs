//! Why an agent is not spawned or sent to. The model reads the text, and can act on it.

/// Why an agent was not spawned or sent to. The model reads it as the result of its call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The run has no fleet, as that of an `Agent` alone.
    #[error("this run has no fleet, which this tool needs; run the agent in a harness")]
    NoFleet,
    /// The child would be deeper than the limit.
    #[error(
        "an agent at depth {depth} can't spawn: agents exist down to depth {max_depth}; do the task yourself"
    )]
    #[non_exhaustive]
    TooDeep {
        /// The caller's depth.
        depth: u16,
        /// The limit.
        max_depth: u16,
    },
    /// The agent does not exist.
    #[error("unknown agent_id {id:?}; known: {}", or_none(known))]
    #[non_exhaustive]
    UnknownAgent {
        /// The name that was given.
        id: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// The agent can't be a child.
    #[error("agent {id:?} can't be spawned: its mode is primary")]
    #[non_exhaustive]
    NotSpawnable {
        /// The agent.
        id: String,
    },
    /// Another child of the session has the label.
    #[error("the label {label:?} is taken by {key}; choose another, or use agent_send to talk to it")]
    #[non_exhaustive]
    LabelTaken {
        /// The label.
        label: String,
        /// The child that has it.
        key: String,
    },
    /// A child is named neither by key nor by label, or by both.
    #[error("give exactly one of agent_key and label")]
    NotOne,
    /// The child does not exist.
    #[error("there is no child {name:?}; known: {}", or_none(known))]
    UnknownChild {
        /// The name that was given.
        name: String,
        /// Keys and labels.
        known: Vec<String>,
    },
    /// The skill does not exist, or the caller may not load it.
    #[error("unknown skill {name:?}; known: {}", or_none(known))]
    #[non_exhaustive]
    UnknownSkill {
        /// The name that was given.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// The limit of background tasks is reached.
    #[error(
        "background tasks are limited to {max} at a time; wait for one with task_wait, or stop one with task_cancel"
    )]
    #[non_exhaustive]
    TooManyTasks {
        /// The limit.
        max: usize,
    },
    /// The text is not the id of a task.
    #[error("unknown task_id {id:?}; task_list shows this session's tasks")]
    UnknownTask {
        /// The text that was given.
        id: String,
    },
    /// The budget leaves no other agent.
    #[error(transparent)]
    Budget(#[from] mainstem_policy::Exceeded),
    /// The task could not be recorded, read or changed.
    #[error("{}", .0.without_paths())]
    Task(#[from] mainstem_task::TaskError),
    /// The child's present turn did not end in time.
    #[error("{key} is still running, so nothing was sent; send with mode steer or interrupt, or later")]
    #[non_exhaustive]
    Busy {
        /// The child.
        key: String,
    },
    /// The child runs elsewhere, and its running turn reads no messages.
    #[error("{key} runs elsewhere and reads messages between its turns only; send with mode queue")]
    #[non_exhaustive]
    OnlyBetweenTurns {
        /// The child.
        key: String,
    },
    /// The message is for the leading agent, which runs no turn, or is to follow its turn.
    #[error("the leading agent reads messages within a running turn only; begin a run for its next turn")]
    OnlyWithinTurn,
    /// The child that the spawn would go on with has a turn running.
    #[error("{key} would go on where it stopped, but is still running; use agent_send to tell it more")]
    #[non_exhaustive]
    StillRunning {
        /// The child.
        key: String,
    },
    /// The caller was stopped before it got a permit.
    #[error("interrupted before it began")]
    Interrupted,
    /// The child was closed.
    #[error("{key} was closed; start another with agent_spawn")]
    #[non_exhaustive]
    Closed {
        /// The child.
        key: String,
    },
    /// The child was cut off while it worked for another user than this run's.
    #[error("{key} worked for another user, so it does not go on by itself; agent_send tells it to")]
    #[non_exhaustive]
    OfAnotherUser {
        /// The child.
        key: String,
    },
    /// The child was spawned by an earlier process, and its agent can't be built in this one.
    #[error("{key} can't go on: agent {id:?} can't be built as it was spawned; start another one")]
    #[non_exhaustive]
    NotRebuilt {
        /// The child.
        key: String,
        /// Its agent.
        id: String,
    },
    /// The child was asked to stop and has not ended yet.
    #[error("{key} was asked to stop and has not yet; try again")]
    #[non_exhaustive]
    StillEnding {
        /// The child.
        key: String,
    },
}

/// Returns the names in a list, or `none`.
pub(crate) fn or_none(known: &[String]) -> String {
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}
