//! Why a session can't be opened or deleted.

use mainstem_journal::JournalError;
use mainstem_message::{IdError, SessionId};
use mainstem_task::TaskError;

/// Why a session can't be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text is not the id of a session.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The journal can't be read or written, or another process has the session open.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The tenant's share of the open sessions is in use.
    #[error(
        "your share of the {most} sessions that can be open at once is in use, and none of yours can be closed: cancel a run, stop reading, \
         or delete a session"
    )]
    #[non_exhaustive]
    TooMany {
        /// How many sessions can be open at once, of all tenants.
        most: usize,
    },
}

/// Why a session can't be deleted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeleteError {
    /// The session does not exist.
    #[error("unknown session {session}")]
    #[non_exhaustive]
    Unknown {
        /// The session.
        session: SessionId,
    },
    /// The session is in use.
    #[error("the session can't be deleted while {0}")]
    InUse(#[from] InUse),
    /// The journal can't be read or written, or another process has the session open.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The records of its tasks can't be read or written.
    #[error(transparent)]
    Tasks(#[from] TaskError),
    /// It is deleted, except for what it has beside its record.
    #[error("session {session} is deleted, but not its files: delete it again")]
    #[non_exhaustive]
    Files {
        /// The session.
        session: SessionId,
    },
}

/// What a session is in use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InUse {
    /// A run of it is queued or active.
    #[error("a run of it is queued or active: cancel that first")]
    Run,
    /// Background tasks of it are running.
    #[error("background tasks of it are running: cancel these first")]
    Tasks,
    /// A reader, a request or the program holds it.
    #[error("a reader or a request holds it: end that first")]
    Held,
}
