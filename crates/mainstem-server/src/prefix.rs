//! The path under which the routes are nested, for links.

use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::{FromRequestParts, OriginalUri},
    http::{HeaderValue, header, request::Parts},
    response::Response,
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

    /// Sets the `Location` of a response to a path of the routes.
    pub(crate) fn set_location(&self, response: &mut Response, path: &str) {
        if let Ok(location) = HeaderValue::from_str(&format!("{}{path}", self.0)) {
            response.headers_mut().insert(header::LOCATION, location);
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Prefix {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}
