//! What can go wrong with a journal.

use std::{path::PathBuf, sync::Arc};

use mainstem_message::SessionId;

/// Why a journal did not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// It has no such session.
    #[error("the journal has no session {session}")]
    Unknown {
        /// The session.
        session: SessionId,
    },
    /// Another writer has the session open: another process, or a session log of this one.
    #[error(
        "session {session} is open elsewhere: one process writes a session at a time, others can read it"
    )]
    Busy {
        /// The session.
        session: SessionId,
    },
    /// A later version of this program has written the file.
    #[error("{path}: written by {written_by} in format {format}, of which this version reads up to {known}; use that program or a later one", path = path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: i64,
        /// The latest format that this version reads.
        known: i64,
        /// The program that has written it last.
        written_by: String,
    },
    /// The file is something else.
    #[error("{path}: not a journal of Mainstem; nothing was changed in it", path = path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// An event is there but can't be read; those before it can.
    #[error("event {seq} of session {session} is damaged: {why}")]
    Damaged {
        /// The session.
        session: SessionId,
        /// The event.
        seq: u64,
        /// The last of the events from it on that can't be read for the same reason; most often
        /// itself.
        through: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The database or the disk.
    #[error("cannot {what} {path}: {source}", path = path.display())]
    Store {
        /// What was attempted.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The journal has been closed.
    #[error("the journal is closed")]
    Closed,
}

impl JournalError {
    /// Whether the same may go well a little later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }

    #[cfg(feature = "sqlite")]
    pub(crate) fn store<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |source| Self::Store { what, path, source: Arc::from(source.into()) }
    }
}
