//! Errors of settings.

use mainstem_model::{ErrorKind, ModelError};
use thiserror::Error;

/// A setting of a provider that is not valid. Keys and header values are never shown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The address of the server.
    #[error("the base URL {url:?} can't be used: {problem}")]
    #[non_exhaustive]
    BaseUrl {
        /// As it was given, without user and password.
        url: String,
        /// What is wrong with it, and what is valid.
        problem: String,
    },
    /// A header to send along.
    #[error("the header {name:?} can't be sent: {problem}")]
    #[non_exhaustive]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The environment holds no key for a server that requires one.
    #[error("{variable} is not set; set it, or set {instead} to a server that needs no key")]
    #[non_exhaustive]
    NoKey {
        /// The variable that was looked up.
        variable: &'static str,
        /// The variable by which to name a server that needs no key.
        instead: &'static str,
    },
    /// The environment holds no base URL for a service where each user has an own.
    #[error("{variable} is not set; set it to the address of your resource")]
    #[non_exhaustive]
    NoBaseUrl {
        /// The variable that was looked up.
        variable: &'static str,
    },
}

impl ConfigError {
    /// An address that is not valid, without user and password, and what is valid.
    pub fn base_url(url: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::BaseUrl { url: url.into(), problem: problem.into() }
    }
}

/// For `?` in a provider of a `ModelRegistry`.
impl From<ConfigError> for ModelError {
    fn from(error: ConfigError) -> Self {
        let kind = match error {
            ConfigError::NoKey { .. } => ErrorKind::Auth,
            _ => ErrorKind::InvalidRequest,
        };
        Self::new(kind, error.to_string())
    }
}
