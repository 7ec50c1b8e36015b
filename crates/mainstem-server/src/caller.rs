//! Which tenant sends a request.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, HeaderValue, Method, header, request::Parts},
    response::{IntoResponse, Response},
};
use mainstem::{Harness, journal::Link, message::SessionId, policy::Tenant};
use mainstem_api::{COOKIE, Code, TENANT_HEADER};

use crate::{
    app::App,
    connection::Connection,
    jobs::OfJob,
    links,
    problem::Problem,
    relay::{Known, Relayed},
    tenant_semaphores::RequestPermit,
};

/// The header of an answer that caches may store: it depends on the caller.
pub(crate) const VARY: (HeaderName, HeaderValue) =
    (header::VARY, HeaderValue::from_static("authorization, cookie, mainstem-tenant"));

/// The caller of a request: a tenant, and its harness.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) tenant: Tenant,
    pub(crate) harness: Harness,
    /// The link that its token is of; `None` if it is a token of the server.
    pub(crate) link: Option<Arc<Link>>,
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
        Ok(Self { tenant, harness, link: None, permit: RequestPermit::default() })
    }

    /// Returns the last event that it may read, if there is such a limit.
    pub(crate) fn through(&self) -> Option<u64> {
        self.link.as_ref().and_then(|link| link.through)
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
        admit(app, parts, &caller).map_err(IntoResponse::into_response)?;
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

/// The reader of a session: a caller, or one that has a link of it.
pub(crate) struct Reader(pub(crate) Caller);

impl Reader {
    /// Returns the caller if it may read a session.
    ///
    /// # Errors
    /// It has a link of another session.
    pub(crate) fn of(self, session: &str) -> Result<Caller, Problem> {
        match &self.0.link {
            Some(link) if link.session.as_str() != session => Err(Problem::new(
                Code::ReadOnly,
                "this token is that of a link, which shows one session, and this is another",
            )),
            _ => Ok(self.0),
        }
    }
}

impl FromRequestParts<Arc<App>> for Reader {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        let Some(token) = token_of_link(app, &parts.headers).map(str::to_owned) else {
            return Caller::from_request_parts(parts, app).await.map(Self);
        };
        let caller = with_link(app, &token).await.map_err(IntoResponse::into_response)?;
        admit(app, parts, &caller).map_err(IntoResponse::into_response)?;
        // Readers with links wait among themselves, so that they do not delay their tenant. Their
        // requests are not sent to other nodes, where they would be the tenant's.
        caller.permit.set(app.link_request_permits.acquire(&caller.tenant).await);
        Ok(Self(caller))
    }
}

/// Counts the connection of a request for its tenant.
fn admit(app: &App, parts: &Parts, caller: &Caller) -> Result<(), Problem> {
    // An application that serves the routes itself limits its connections itself.
    let is_admitted = match parts.extensions.get::<Connection>() {
        Some(connection) => {
            let shares =
                if caller.link.is_some() { &app.link_connection_shares } else { &app.connection_shares };
            connection.admit(shares, &caller.tenant)
        }
        None => true,
    };
    if is_admitted {
        return Ok(());
    }
    let detail = "your share of this server's connections is in use";
    Err(Problem::new(Code::TooManyConnections, detail).retry_after(5))
}

/// Returns the token of a request if it is that of a link.
fn token_of_link<'a>(app: &App, headers: &'a HeaderMap) -> Option<&'a str> {
    presented(headers).filter(|token| links::is_of_link(token) && app.tokens.tenant_of(token).is_none())
}

/// Returns the reader with a link.
async fn with_link(app: &App, token: &str) -> Result<Caller, Problem> {
    let mut link = links::of_token(app, token).await?;
    let tenant: Tenant = link.session.tenant().map(str::parse).transpose()?;
    // Without tokens, every request is of the harness itself. One whose tokens are gone is not
    // served, and its links aren't.
    if !app.serves(&tenant) {
        return Err(Problem::new(Code::LinkOver, "the tenant of this link is not served here"));
    }
    if let Some(name) = &tenant {
        let own: Option<SessionId> = link.session.unscoped(name);
        link.session = own.ok_or_else(|| Problem::not_found("session", link.session.as_str()))?;
    }
    Ok(Caller { link: Some(Arc::new(link)), ..Caller::of(app, tenant)? })
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
    if let Some(tenant) = known {
        return Caller::of(app, tenant.clone());
    }
    let own = tenant(app, &parts.headers)?;
    let tenant = named_tenant(app, own, &parts.headers)?;
    if let (None, Some(tenant)) = (own, &tenant)
        && parts.method != Method::GET
    {
        let (method, path) = (&parts.method, parts.uri.path());
        tracing::info!(%tenant, %method, path, "the operator sends a request as a tenant");
    }
    Caller::of(app, tenant)
}

/// Returns the tenant that a request names in its header, by default that of its token.
fn named_tenant(app: &App, own: &Tenant, headers: &HeaderMap) -> Result<Tenant, Problem> {
    let mut names = headers.get_all(TENANT_HEADER).into_iter();
    let Some(name) = names.next() else { return Ok(own.clone()) };
    if names.next().is_some() {
        let detail = format!("the request has more than one `{TENANT_HEADER}`");
        return Err(Problem::new(Code::BadId, detail));
    }
    let name = String::from_utf8_lossy(name.as_bytes());
    match own {
        Some(own) if own.as_str() == name => Ok(Some(own.clone())),
        Some(_) => Err(Problem::new(
            Code::OperatorOnly,
            format!(
                "only the operator's token sends requests as another tenant; leave out `{TENANT_HEADER}`"
            ),
        )),
        None => {
            let tenant: Tenant = name.parse().ok();
            let is_served = tenant.is_some() && app.serves(&tenant);
            is_served.then_some(tenant).ok_or_else(|| Problem::not_found("tenant", &name))
        }
    }
}

/// Returns the tenant whose token the request has.
fn tenant<'a>(app: &'a App, headers: &HeaderMap) -> Result<&'a Tenant, Problem> {
    if token_of_link(app, headers).is_some() {
        let detail = "this token is that of a link, which only reads its session";
        return Err(Problem::new(Code::ReadOnly, detail));
    }
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
