//! `GET /sessions`, `GET`, `DELETE /sessions/{id}`, `GET /sessions/{id}/fleet`.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::{event::FleetState, prelude::Session, session::view};
use mainstem_api::{AnySession, Items, SessionView};

use crate::{
    app::{App, unrecorded},
    body::Path,
    caller::Caller,
    problem::Problem,
};

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<Items<SessionView>>, Problem> {
    let mut items = caller.harness.sessions().views().await.map_err(|error| app.unreadable(&error))?;
    // The harness without a tenant lists those of tenants, too.
    items.retain(|session| session.id.tenant().is_none());
    Ok(Json(Items { items }))
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<SessionView>, Problem> {
    Ok(Json(view::open(&app.session(&caller, &id).await?)))
}

pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    app.delete(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn fleet(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let fleet = committed_fleet(&app.session(&caller, &id).await?).await?;
    let tag = format!("\"{}\"", fleet.seq);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if known.split(',').any(|one| one.trim() == tag || one.trim() == "*") {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    Ok(([(header::ETAG, tag)], Json(fleet)).into_response())
}

/// What every agent is doing, up to an event that is committed: the reader can go on after it, also
/// after a crash.
pub(crate) async fn committed_fleet(session: &Session) -> Result<FleetState, Problem> {
    AnySession::fleet(session).await.map_err(|_| unrecorded())
}
