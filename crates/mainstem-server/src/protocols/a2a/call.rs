//! What every request has: its caller, its version, the extensions that it asks for.

use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts, uri::Authority},
    response::Response,
};
use mainstem_a2a::{Framing, error::check_version, extension, extension::Extension};
use serde_json::Value;

use super::{PATH, refusal::Refusal};
use crate::{app::App, caller::Caller, large, prefix::Prefix};

/// A request by a caller.
pub(crate) struct Call {
    pub(super) app: Arc<App>,
    pub(super) caller: Caller,
    pub(super) place: Place,
    /// How the frames of a stream are wrapped.
    pub(super) framing: Framing,
    version: Option<String>,
    pub(super) wants_extension: bool,
    last_event: Option<u64>,
}

impl Call {
    /// Refuses versions that are not spoken here.
    pub(super) fn check_version(&self) -> Result<(), Refusal> {
        Ok(check_version(self.version.as_deref())?)
    }

    /// Returns the last event that the client has, if it wants those behind it.
    pub(super) fn last_event(&self) -> Option<u64> {
        self.last_event.filter(|_| self.wants_extension)
    }

    /// Returns the extension, if the client asks for it.
    pub(super) fn extension(&self) -> Option<Extension> {
        let prefix = self.place.prefix.clone();
        let json = move |event: &mainstem::event::AgentEvent| -> Value {
            serde_json::from_str(&large::json(&event.without_spec(), Some(&prefix.0))).unwrap_or_default()
        };
        self.wants_extension.then(|| Extension::new(json))
    }
}

impl FromRequestParts<Arc<App>> for Call {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let Ok(place) = Place::from_request_parts(parts, app).await;
        let version = header_value(&parts.headers, "a2a-version").map(str::to_owned);
        let wanted = parts.headers.get_all("a2a-extensions").iter().filter_map(|value| value.to_str().ok());
        Ok(Self {
            app: app.clone(),
            caller,
            place,
            framing: Framing::Plain,
            version: version.or_else(|| version_in(parts.uri.query()?)),
            last_event: header_value(&parts.headers, "last-event-id")
                .and_then(|value| value.trim().parse().ok()),
            wants_extension: wanted.into_iter().any(extension::is_wanted),
        })
    }
}

/// Returns the version that a query has; it can stand there instead of in the header.
fn version_in(query: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| name.eq_ignore_ascii_case("a2a-version")).map(|(_, value)| value.to_owned())
}

/// The address under which a client knows the server.
pub(crate) struct Place {
    pub(super) prefix: Prefix,
    /// The scheme and the host.
    origin: String,
}

impl Place {
    /// Returns the address of both bindings.
    pub(super) fn url(&self) -> String {
        format!("{}{}{PATH}", self.origin, self.prefix.0)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Place {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let prefix = Prefix::from_request_parts(parts, state).await?;
        // A proxy that ends TLS says so.
        let scheme = header_value(&parts.headers, "x-forwarded-proto").filter(|scheme| *scheme == "https");
        let host = parts.uri.authority().map(Authority::as_str);
        let host =
            host.or_else(|| header_value(&parts.headers, header::HOST.as_str())).unwrap_or("localhost");
        Ok(Self { prefix, origin: format!("{}://{host}", scheme.unwrap_or("http")) })
    }
}

fn header_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
