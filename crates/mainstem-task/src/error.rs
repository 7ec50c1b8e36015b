//! What can go wrong with a task's record.

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
    /// What it is.
    pub from: TaskStatus,
    /// What it was to become.
    pub to: TaskStatus,
}

/// Why a task could not be recorded, changed or read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// No task has this id.
    #[error("unknown task_id {id:?}; task_list shows this session's tasks")]
    Unknown {
        /// The id.
        id: TaskId,
    },
    /// A task has this id already.
    #[error("there is a task {id} already")]
    Exists {
        /// The id.
        id: TaskId,
    },
    /// The state machine refuses it.
    #[error(transparent)]
    Illegal(#[from] IllegalChange),
    /// Somebody else changed the record meanwhile: read it again.
    #[error("task {id} was changed by another: it is at version {version} now")]
    Conflict {
        /// The task.
        id: TaskId,
        /// Its present version.
        version: u64,
    },
    /// Another executor has taken the task over; this one must not touch it any more.
    #[error("task {id} was taken over by another executor")]
    Fenced {
        /// The task.
        id: TaskId,
    },
    /// The set has been shut down.
    #[error("no task can begin any more: the harness is shutting down")]
    Closed,
    /// A file of tasks is not what it should be. It was kept aside, and a new one will be begun.
    #[error("the task file {} can't be read ({problem}); it was kept as {}", path.display(), kept.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where it is now.
        kept: PathBuf,
        /// What is wrong with it, and where.
        problem: String,
    },
    /// The file system.
    #[error("can't {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// What it said.
        source: Arc<io::Error>,
    },
}

impl TaskError {
    /// Returns the message without file names, for models, events and callers. Only operators see
    /// file names.
    pub fn without_paths(&self) -> String {
        match self {
            Self::Corrupt { problem, .. } => {
                format!("the records of tasks can't be read ({problem}); they were kept aside")
            }
            Self::Io { doing, source, .. } => format!("can't {doing} the records of tasks: {source}"),
            other => other.to_string(),
        }
    }

    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source: Arc::new(source) }
    }
}
