//! Errors of nodes, and how those of the database become errors of journals and tasks.

use std::{error::Error as StdError, fmt, io};

use deadpool_postgres::{HookError, PoolError};
use mainstem_journal::JournalError;
use mainstem_task::TaskError;
use tokio_postgres::error::SqlState;

/// Why a node can't join a database.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL of the database can't be parsed. It is not repeated here, as it may have a password.
    #[error("the URL of the database is not valid: {0}; it is like postgres://user@host:5432/database")]
    Settings(String),
    /// TLS can't be used.
    #[error("TLS is not available: {0}")]
    Tls(String),
    /// The thread of the node can't be started.
    #[error("the thread of a node can't be started: {0}")]
    Thread(String),
    /// Programs of a later version have changed the tables.
    #[error(
        "{place}: its tables have version {version}, and this program knows versions up to {known}; use a later program"
    )]
    #[non_exhaustive]
    Newer {
        /// The database.
        place: String,
        /// The version of its tables.
        version: i32,
        /// The latest version that this program knows.
        known: i32,
    },
    /// The database has no tables.
    #[error("{place}: it has no tables of Mainstem; the first server creates them, or `mainstem migrate`")]
    #[non_exhaustive]
    Empty {
        /// The database.
        place: String,
    },
    /// The tables are those of an earlier version.
    #[error(
        "{place}: its tables have version {version}, and this program needs {known}: run `mainstem migrate` once, which the programs of the version before survive"
    )]
    #[non_exhaustive]
    Older {
        /// The database.
        place: String,
        /// The version of its tables.
        version: i32,
        /// The version that this program needs.
        known: i32,
    },
    /// The database failed.
    #[error("cannot {what} {place}: {why}")]
    #[non_exhaustive]
    Database {
        /// The operation, as a verb.
        what: &'static str,
        /// The database.
        place: String,
        /// The cause.
        why: String,
    },
}

/// What the database answered, in one line.
#[derive(Debug)]
pub(crate) struct Failure {
    why: String,
    /// Whether the same request may succeed later, on another connection.
    pub(crate) is_transient: bool,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn permanent(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_transient: false }
    }

    pub(crate) fn transient(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_transient: true }
    }

    pub(crate) fn at(self, what: &'static str, place: &str) -> Error {
        Error::Database { what, place: place.to_owned(), why: self.why }
    }

    pub(crate) fn of_journal(self, what: &'static str, place: &str) -> JournalError {
        JournalError::store(what, place)(self)
    }

    pub(crate) fn of_tasks(self, doing: &'static str, place: &str) -> TaskError {
        TaskError::io(doing, place)(io::Error::other(self.why))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl StdError for Failure {}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(answer) => {
                let is_transient = is_transient(answer.code());
                Self { why: format!("{} ({})", answer.message(), answer.code().code()), is_transient }
            }
            // The connection, not the request, has failed; or an answer can't be read.
            None => Self { why: with_sources(&error), is_transient: error.is_closed() || has_io(&error) },
        }
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
                let failure = Self::from(error);
                // A refused password stays refused; all else that prevents a connection may pass.
                let is_refused = failure.why.ends_with("(28P01)") || failure.why.ends_with("(28000)");
                Self { is_transient: !is_refused, ..failure }
            }
            PoolError::Timeout(_) => Self::transient("all connections are in use"),
            error => Self::permanent(error.to_string()),
        }
    }
}

/// Returns an error's text with those of its causes.
pub(crate) fn with_sources(error: &dyn StdError) -> String {
    let why = error.to_string();
    match error.source().map(with_sources) {
        Some(source) if !why.contains(&source) => format!("{why}: {source}"),
        _ => why,
    }
}

fn has_io(error: &(dyn StdError + 'static)) -> bool {
    error.is::<io::Error>() || error.source().is_some_and(has_io)
}

/// The server is stopping, starting, out of connections, or another transaction was in the way.
fn is_transient(code: &SqlState) -> bool {
    let class = code.code().get(..2).unwrap_or_default();
    matches!(class, "08" | "40" | "57") || *code == SqlState::TOO_MANY_CONNECTIONS || *code == SqlState::LOCK_NOT_AVAILABLE
        // The server ends transactions that are idle, such as those of a paused node.
        || *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
}
