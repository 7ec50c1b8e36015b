//! Errors of journals.

use std::{path::PathBuf, sync::Arc};

use mainstem_message::SessionId;

/// Why a journal failed.
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
    #[non_exhaustive]
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
    /// An earlier version of this program has written the file, and this process can't add to it
    /// what is missing.
    #[error("{path}: written by an earlier version, and this process can't write it; open it once where it can be written, or a copy of it", path = path.display())]
    #[non_exhaustive]
    Older {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a journal.
    #[error("{path}: not a journal of Mainstem; nothing was changed in it", path = path.display())]
    #[non_exhaustive]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// An event is there but can't be read; those before it can.
    #[error("event {seq} of session {session} is damaged: {why}")]
    #[non_exhaustive]
    Damaged {
        /// The session.
        session: SessionId,
        /// The event.
        seq: u64,
        /// The last of the events that can't be read for the same reason, counted from `seq` on;
        /// most often `seq` itself.
        through: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The database or the disk failed.
    #[error("cannot {what} {path}: {source}", path = path.display())]
    #[non_exhaustive]
    Store {
        /// The operation, as a verb.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The journal has been closed.
    #[error("the journal is closed")]
    Closed,
}

impl JournalError {
    /// Returns `true` if a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }

    /// An event that can't be read, alone.
    pub fn damaged(session: SessionId, seq: u64, why: impl Into<String>) -> Self {
        Self::Damaged { session, seq, through: seq, why: why.into() }
    }

    /// Returns a function for `map_err`: the operation, as a verb, and the file or database.
    ///
    /// ```
    /// # use mainstem_journal::JournalError;
    /// let error = JournalError::store("open", "journal.db")("the disk is full");
    /// assert_eq!(error.to_string(), "cannot open journal.db: the disk is full");
    /// ```
    pub fn store<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |source| Self::Store { what, path, source: Arc::from(source.into()) }
    }
}
