//! Which tenant sends a request.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
    response::{IntoResponse, Response},
};
use mainstem::{Harness, policy::Tenant};
use mainstem_api::{COOKIE, Code};

use crate::{
    app::App,
    connection::Connection,
    jobs::OfJob,
    problem::Problem,
    relay::{Known, Relayed},
    tenant_semaphores::RequestPermit,
};

/// The caller of a request: a tenant, and its harness.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) tenant: Tenant,
    pub(crate) harness: Harness,
    /// The permit of this request among those of its tenant.
    permit: RequestPermit,
}

impl Caller {
    /// The caller of this tenant, in a request whose caller is known.
    pub(crate) fn of(app: &App, tenant: Tenant) -> Result<Self, Problem> {
        let harness = match &tenant {
            None => app.harness.clone(),
            // It was opened when the server was built, so nothing blocks here.
            Some(name) => app.harness.tenant(name.as_str()).map_err(|error| {
                // The cause may name files, which are the operator's to know.
                tracing::error!(%error, "a tenant can't be opened");
                let detail = "your tenant can't be opened at the moment; the server's log says why";
                Problem::new(Code::TenantUnusable, detail)
            })?,
        };
        Ok(Self { tenant, harness, permit: RequestPermit::default() })
    }

    /// Releases the permit of this request, which waits for something or is answered, so that
    /// another request of the tenant can be handled.
    pub(crate) fn release_permit(&self) {
        self.permit.release();
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        let caller = identify(app, parts).map_err(IntoResponse::into_response)?;
        // An application that serves the routes itself limits its connections itself.
        let is_admitted = match parts.extensions.get::<Connection>() {
            Some(connection) => connection.admit(&app.connection_shares, &caller.tenant),
            None => true,
        };
        if !is_admitted {
            let detail = "your share of this server's connections is in use";
            let problem = Problem::new(Code::TooManyConnections, detail);
            return Err(problem.retry_after(5).into_response());
        }
        // Further requests of the tenant wait, so that they do not delay those of others. A request
        // with a body waits after the body is read.
        if parts.extensions.get::<TakesBody>().is_none() {
            caller.permit.set(app.request_permits.acquire(&caller.tenant).await);
        }
        if let Some(known) = parts.extensions.get::<Known>() {
            known.set_tenant(&caller.tenant);
        }
        parts.extensions.insert(Identified { tenant: caller.tenant.clone(), permit: caller.permit.clone() });
        Ok(caller)
    }
}

/// In the extensions of a request whose handler reads a [`Body`](crate::body::Body).
#[derive(Clone)]
pub(crate) struct TakesBody;

/// In a request's extensions once its caller is known.
#[derive(Clone)]
pub(crate) struct Identified {
    pub(crate) tenant: Tenant,
    pub(crate) permit: RequestPermit,
}

fn identify(app: &App, parts: &Parts) -> Result<Caller, Problem> {
    let known = parts.extensions.get::<Relayed>().map(|Relayed(tenant)| tenant);
    let known = known.or_else(|| parts.extensions.get::<OfJob>().map(|OfJob(tenant)| tenant));
    let tenant = match known {
        Some(tenant) => tenant,
        None => tenant(app, &parts.headers)?,
    };
    Caller::of(app, tenant.clone())
}

/// Returns the tenant whose token the request has.
fn tenant<'a>(app: &'a App, headers: &HeaderMap) -> Result<&'a Tenant, Problem> {
    if app.tokens.is_empty() {
        return Ok(&None);
    }
    let token = presented(headers).ok_or_else(|| {
        Problem::new(Code::NoToken, "a token is required, as `Authorization: Bearer …` or `x-api-key`")
    })?;
    app.tokens.tenant_of(token).ok_or_else(|| Problem::new(Code::BadToken, "invalid token"))
}

fn presented(headers: &HeaderMap) -> Option<&str> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = header(header::AUTHORIZATION.as_str()).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    bearer.or_else(|| header("x-api-key")).or_else(|| cookie(header(header::COOKIE.as_str())?))
}

fn cookie(cookies: &str) -> Option<&str> {
    let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}
