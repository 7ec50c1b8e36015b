//! Errors of task records.

use std::{io, path::PathBuf, sync::Arc};

use mainstem_event::TaskStatus;
use mainstem_message::TaskId;

/// A change that the state machine refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("task {id} is {} and can't become {}", from.as_str(), to.as_str())]
#[non_exhaustive]
pub struct IllegalChange {
    /// The task.
    pub id: TaskId,
    /// Its status.
    pub from: TaskStatus,
    /// The status that was refused.
    pub to: TaskStatus,
}

/// Why a task could not be recorded, changed or read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The store has no task of this id.
    #[error("unknown task_id {id:?}; task_list shows this session's tasks")]
    Unknown {
        /// The id.
        id: TaskId,
    },
    /// The store has a task of this id already.
    #[error("task {id} exists already")]
    Exists {
        /// The id.
        id: TaskId,
    },
    /// The state machine refuses the change.
    #[error(transparent)]
    Illegal(#[from] IllegalChange),
    /// Another writer changed the record meanwhile. Read it again and retry.
    #[error("task {id} was changed meanwhile: its version is {version}")]
    Conflict {
        /// The task.
        id: TaskId,
        /// Its present version.
        version: u64,
    },
    /// Another executor has taken the task over; this one must leave it alone.
    #[error("task {id} was taken over by another executor")]
    Fenced {
        /// The task.
        id: TaskId,
    },
    /// The task has not ended, so its record can't be removed.
    #[error("task {id} is {}: only the record of a task that is over can be removed; cancel it first", status.as_str())]
    #[non_exhaustive]
    NotOver {
        /// The task.
        id: TaskId,
        /// Its status.
        status: TaskStatus,
    },
    /// The set has been shut down.
    #[error("no task can begin: the harness is shutting down")]
    Closed,
    /// A file of tasks can't be parsed. It was renamed, and the next change begins a new one.
    #[error("the task file {} can't be read ({problem}); it was renamed to {}", path.display(), renamed_to.display())]
    #[non_exhaustive]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Its new name.
        renamed_to: PathBuf,
        /// The parse error, with its place.
        problem: String,
    },
    /// The file system failed.
    #[error("can't {doing} {}: {source}", path.display())]
    #[non_exhaustive]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Arc<io::Error>,
    },
}

impl TaskError {
    /// Returns the message without file names, for models, events and callers. Only operators see
    /// file names.
    pub fn without_paths(&self) -> String {
        match self {
            Self::Corrupt { problem, .. } => {
                format!("the records of tasks can't be read ({problem}); their file was renamed")
            }
            Self::Io { doing, source, .. } => format!("can't {doing} the records of tasks: {source}"),
            other => other.to_string(),
        }
    }

    /// Returns a function for `map_err`: the operation, as a verb, and the file.
    pub fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source: Arc::new(source) }
    }
}
