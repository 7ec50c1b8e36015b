//! Why a request to a session, here or on a server, failed.

use std::time::Duration;

use mainstem_message::IdError;

use crate::{Code, Problem};

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The session or the server refused the request.
    #[error("{}{problem}", place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default())]
    #[non_exhaustive]
    Refused {
        /// The address of the server; `None` for a local session.
        place: Option<String>,
        /// The reason.
        problem: Box<Problem>,
    },
    /// The server can't be reached, or the connection was lost.
    #[error("{server} can't be reached: {reason}")]
    #[non_exhaustive]
    Unreachable {
        /// The address of the server.
        server: String,
        /// The cause.
        reason: String,
    },
    /// The response is not one of this API.
    #[error("{server}: {reason}")]
    #[non_exhaustive]
    Invalid {
        /// The address of the server.
        server: String,
        /// What is wrong with the response.
        reason: String,
    },
}

impl Error {
    /// A refusal of the server at this address.
    pub fn refused(server: impl Into<String>, problem: Problem) -> Self {
        Self::Refused { place: Some(server.into()), problem: Box::new(problem) }
    }

    /// The server at this address was not reached, or the connection was lost.
    pub fn unreachable(server: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unreachable { server: server.into(), reason: reason.into() }
    }

    /// A response that is not one of this API, and what is wrong with it.
    pub fn invalid(server: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid { server: server.into(), reason: reason.into() }
    }

    /// Returns the problem of a refusal.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problem, .. } => Some(problem),
            Self::Unreachable { .. } | Self::Invalid { .. } => None,
        }
    }

    /// Returns `true` if the request was refused with this code.
    pub fn has_code(&self, code: &Code) -> bool {
        self.problem().is_some_and(|problem| problem.code == *code)
    }

    /// Returns how long the server asks to wait before the request is repeated.
    pub fn retry_after(&self) -> Option<Duration> {
        let asked = self.problem()?.more.get("retry_after_ms")?.as_u64();
        asked.map(Duration::from_millis)
    }

    /// Returns `true` if the same request may succeed later: the server was not reached, or was
    /// overloaded.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Refused { problem, .. } => matches!(problem.status, 408 | 429 | 500..=599),
            Self::Unreachable { .. } => true,
            Self::Invalid { .. } => false,
        }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Refused { place: None, problem: Box::new(problem) }
    }
}

impl From<IdError> for Error {
    fn from(error: IdError) -> Self {
        Problem::from(error).into()
    }
}
