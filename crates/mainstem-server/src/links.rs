//! `/sessions/{id}/links`, `/link`: a session is read with a link, without a token of the server.
//!
//! A link has a token, of which the journal stores a digest, so every node knows it and it can be
//! revoked. A handler serves readers with a link only if it takes a
//! [`Reader`](crate::caller::Reader).

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::{
    event::{Clock, SystemClock},
    journal::{Journal, Link},
    message::{LinkId, SessionId},
};
use mainstem_api::{Code, Endpoint, Items, LinkView, NewLink, NewLinkView};
use sha2::{Digest, Sha256};
use tokio::time::{Duration, Instant};

use crate::{
    app::App,
    body::{Body, Path},
    caller::{Caller, Reader},
    prefix::Prefix,
    problem::Problem,
    tokens,
};

/// How many links of a session there are at once; a few more if they are created at once.
pub(crate) const MAX_LINKS: usize = 100;

/// The beginning of the token of a link.
const MARK: &str = "msl";

/// How long a stream goes on after its link was revoked.
const CHECK: Duration = Duration::from_secs(5);

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(session): Path<String>,
) -> Result<Json<Items<LinkView>>, Problem> {
    let session = session.parse()?;
    let links = links(&app, &caller, &session).await?;
    if links.is_empty() {
        let found = journal(&caller)?.session(&session).await.map_err(|error| app.unreadable(&error))?;
        found.ok_or_else(|| Problem::not_found("session", session.as_str()))?;
    }
    Ok(Json(Items { items: links.into_iter().map(view).collect() }))
}

pub(crate) async fn add(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(session): Path<String>,
    prefix: Prefix,
    Body(new, _): Body<NewLink>,
) -> Result<Response, Problem> {
    let session: SessionId = session.parse()?;
    let lasts = new.expires_in.unwrap_or(NewLink::DEFAULT);
    if !(NewLink::SHORTEST..=NewLink::LONGEST).contains(&lasts) {
        let why = format!("a link lasts {} to {} seconds", NewLink::SHORTEST, NewLink::LONGEST);
        return Err(Problem::misfit("/expires_in", &why));
    }
    let journal = journal(&caller)?;
    let unreadable = |error| app.unreadable(&error);
    let unknown = || Problem::not_found("session", session.as_str());
    if let Some(through) = new.through {
        let recorded = journal.session(&session).await.map_err(unreadable)?.ok_or_else(unknown)?;
        if !(recorded.first..=recorded.last).contains(&through) {
            let why = format!("the session has events {} to {}", recorded.first, recorded.last);
            return Err(Problem::misfit("/through", &why));
        }
    }
    if links(&app, &caller, &session).await?.len() >= MAX_LINKS {
        let detail = format!("this session has {MAX_LINKS} links; revoke some");
        return Err(Problem::new(Code::TooManyLinks, detail));
    }
    let token = tokens::secret(MARK);
    let id = id_of(&token)?;
    let now = SystemClock.now();
    let expires_at = now.after(Duration::from_secs(lasts));
    let link = Link { id, session, created_at: now, expires_at, through: new.through };
    if !journal.add_link(link.clone()).await.map_err(unreadable)? {
        return Err(Problem::not_found("session", link.session.as_str()));
    }
    tracing::info!(session = %link.session, link = %link.id, expires_at = %link.expires_at, "a link was created");
    let path = Endpoint::DeleteLink.path(&[link.session.as_str(), link.id.as_str()]);
    let page = cfg!(feature = "page").then(|| format!("{}/#{}?link={token}", prefix.0, link.session));
    let mut response =
        (StatusCode::CREATED, Json(NewLinkView { link: view(link), token, page })).into_response();
    prefix.set_location(&mut response, &path);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((session, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let (session, id): (SessionId, LinkId) = (session.parse()?, id.parse()?);
    let journal = journal(&caller)?;
    let unknown = || Problem::not_found("link", id.as_str());
    let found = journal.link(&id).await.map_err(|error| app.unreadable(&error))?;
    let link = found.filter(|link| link.session == session).ok_or_else(unknown)?;
    if !journal.remove_link(&link.id).await.map_err(|error| app.unreadable(&error))? {
        return Err(unknown());
    }
    tracing::info!(%session, link = %id, "a link was revoked");
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the link that the caller has.
pub(crate) async fn get(Reader(caller): Reader) -> Result<Json<LinkView>, Problem> {
    let detail = "the token of this request is not that of a link";
    let link = caller.link.ok_or_else(|| Problem::new(Code::NotFound, detail))?;
    Ok(Json(view(Link::clone(&link))))
}

fn view(link: Link) -> LinkView {
    let Link { id, session: session_id, created_at, expires_at, through } = link;
    LinkView { id, session_id, created_at, expires_at, through }
}

fn journal(caller: &Caller) -> Result<&Arc<dyn Journal>, Problem> {
    let detail = "links are stored in a journal, and this server has none: `--journal` sets it";
    caller.harness.journal().ok_or_else(|| Problem::new(Code::NoLinks, detail))
}

/// Returns the links of a session that have not ended.
async fn links(app: &App, caller: &Caller, session: &SessionId) -> Result<Vec<Link>, Problem> {
    let mut links = journal(caller)?.links(session).await.map_err(|error| app.unreadable(&error))?;
    let now = SystemClock.now();
    links.retain(|link| !link.is_over(now));
    Ok(links)
}

/// Returns the id of the link with this token: half of its SHA-256, so that the id of a link does
/// not show its token.
fn id_of(token: &str) -> Result<LinkId, Problem> {
    let digest = Sha256::digest(token);
    Ok(digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>().parse()?)
}

/// Returns whether a token has the form of those of links.
pub(crate) fn is_of_link(token: &str) -> bool {
    token
        .strip_prefix(MARK)
        .is_some_and(|rest| rest.len() == 64 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns the link that a token is of, among those of all tenants.
pub(crate) async fn of_token(app: &App, token: &str) -> Result<Link, Problem> {
    let over = || Problem::new(Code::LinkOver, "this link has ended or was revoked; ask for a new one");
    let journal = app.harness.journal().ok_or_else(over)?;
    // Callers who are not known yet must not fill the journal's queue.
    let permit = app.link_permits.acquire().await;
    let found = journal.link(&id_of(token)?).await;
    drop(permit);
    let found = found.map_err(|error| app.unreadable(&error))?;
    found.filter(|link| !link.is_over(SystemClock.now())).ok_or_else(over)
}

/// Watches the link of a stream's reader.
pub(crate) struct LinkWatch {
    journal: Arc<dyn Journal>,
    link: Arc<Link>,
    check_at: Instant,
}

impl LinkWatch {
    pub(crate) fn new(journal: Arc<dyn Journal>, link: Arc<Link>) -> Self {
        Self { journal, link, check_at: Instant::now() + CHECK }
    }

    /// Returns when to ask again whether the link is over.
    pub(crate) fn check_at(&self) -> Instant {
        let left = Duration::from_millis(self.link.expires_at.millis_since(SystemClock.now()) + 1);
        self.check_at.min(Instant::now() + left)
    }

    /// Returns `true` once the link has ended or was revoked.
    pub(crate) async fn is_over(&mut self) -> bool {
        if self.link.is_over(SystemClock.now()) {
            return true;
        }
        if Instant::now() < self.check_at {
            return false;
        }
        self.check_at = Instant::now() + CHECK;
        // While the journal can't be read, its events can't, either.
        matches!(self.journal.link(&self.link.id).await, Ok(None))
    }
}
