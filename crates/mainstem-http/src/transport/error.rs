//! Failures of connections, as errors of a model.

use std::{error::Error, io};

use mainstem_model::{ErrorKind, ModelError};
use thiserror::Error;

use crate::Server;

/// Why a request or its response failed.
#[derive(Debug, Error)]
pub(crate) enum TransportError {
    /// The client of reqwest has failed.
    #[error(transparent)]
    Client(#[from] reqwest::Error),
    /// The request is invalid.
    #[error(transparent)]
    Request(#[from] hyper::http::Error),
    /// The connection could not be established.
    #[error("can't connect")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    /// The connection failed before the head of the response.
    #[error("no response")]
    Head(#[source] hyper::Error),
    /// It failed later.
    #[error("the response was cut")]
    Body(#[source] hyper::Error),
}

impl TransportError {
    fn is_timeout(&self) -> bool {
        match self {
            Self::Client(error) => error.is_timeout(),
            Self::Request(_) => false,
            Self::Connect(error) => is_timeout(&**error),
            Self::Head(error) | Self::Body(error) => is_timeout(error),
        }
    }

    /// Returns what happened, with the innermost cause, for a sentence that begins with the
    /// server's name.
    fn what(&self, server: &Server) -> String {
        let cause = root(self);
        let (is_connect, is_body) = match self {
            Self::Client(error) if error.is_builder() => return format!("can't be asked: {cause}"),
            Self::Request(_) => return format!("can't be asked: {cause}"),
            Self::Client(error) => (error.is_connect(), error.is_body() || error.is_decode()),
            Self::Connect(_) => (true, false),
            Self::Head(_) => (false, false),
            Self::Body(_) => (false, true),
        };
        if is_connect {
            format!("can't be reached: {cause}; {}", server.advice())
        } else if is_body {
            format!("was cut off before its answer was complete: {cause}")
        } else {
            format!("did not answer: {cause}")
        }
    }

    fn without_url(self) -> Self {
        match self {
            Self::Client(error) => Self::Client(error.without_url()),
            other => other,
        }
    }
}

/// Returns the failure of a connection, with advice.
pub(crate) fn failure(server: &Server, error: TransportError) -> ModelError {
    let kind = if error.is_timeout() { ErrorKind::Timeout } else { ErrorKind::Transport };
    server.error(kind, &error.what(server)).with_source(error.without_url())
}

fn is_timeout(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut)
    })
}

/// Returns the innermost cause: the outer ones only say that something failed.
fn root(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    match error.to_string() {
        cause if cause.starts_with("failed to lookup address") => "its name can't be resolved".to_owned(),
        cause => cause,
    }
}
