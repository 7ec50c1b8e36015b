//! The path under which the routes are nested, for links.

use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::{FromRequestParts, OriginalUri},
    http::request::Parts,
};

/// The path prefix under which the routes are nested; empty if they are not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefix(pub(crate) Arc<str>);

impl Prefix {
    /// Returns the prefix of a request.
    pub(crate) fn of(parts: &Parts) -> Self {
        let whole = parts.extensions.get::<OriginalUri>().map(|OriginalUri(uri)| uri.path());
        let prefix = whole.and_then(|whole| whole.strip_suffix(parts.uri.path()));
        Self(prefix.unwrap_or_default().into())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Prefix {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}
