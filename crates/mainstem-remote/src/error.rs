//! Errors of remote agents.

use mainstem_event::Outcome;
use mainstem_message::Failure;
use mainstem_react::AgentError;

/// Why a turn of a remote agent failed. No message has a secret.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The server can't be reached, or the connection was lost and could not be established again.
    #[error("{message}")]
    #[non_exhaustive]
    Unreachable {
        /// The address and the cause.
        message: String,
    },
    /// The server refused the request.
    #[error("{message}")]
    #[non_exhaustive]
    Refused {
        /// The address and the reason.
        message: String,
        /// The status of the response, if it had one.
        status: Option<u16>,
    },
    /// What the server sent is not in its protocol.
    #[error("{message}")]
    #[non_exhaustive]
    Invalid {
        /// The address and what is wrong.
        message: String,
    },
    /// The events of the agent broke a law of event streams.
    #[error("the remote agent broke the laws of event streams and was stopped: {what}")]
    #[non_exhaustive]
    Unlawful {
        /// The event and the rule.
        what: String,
    },
    /// The stream ended before the turn did.
    #[error("the remote agent's stream ended before its turn did")]
    Ended,
}

impl RemoteError {
    /// The server can't be reached.
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::Unreachable { message: message.into() }
    }

    /// The server refused the request.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::Refused { message: message.into(), status: None }
    }

    /// What the server sent is not in its protocol.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into() }
    }

    /// Returns the stable code of the failure in events.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } | Self::Ended => "remote_unreachable",
            Self::Refused { .. } => "remote_refused",
            Self::Invalid { .. } => "remote_invalid",
            Self::Unlawful { .. } => "remote_unlawful",
        }
    }
}

impl From<RemoteError> for AgentError {
    fn from(error: RemoteError) -> Self {
        Self::remote(Outcome::Error, Failure::new(error.code(), error.to_string()))
    }
}
