//! `GET /sessions`, `GET`, `DELETE /sessions/{id}`, `GET /sessions/{id}/fleet`.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::{
    event::FleetState,
    journal::Part,
    prelude::Session,
    session::{listing, view},
};
use mainstem_api::{AnySession, FleetQuery, Page, SessionQuery, SessionView};

use crate::{
    app::{App, unrecorded},
    body::{Path, Query},
    caller::{Caller, Reader, VARY},
    events,
    problem::Problem,
};

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<SessionQuery>,
) -> Result<Json<Page<SessionView>>, Problem> {
    let listing = listing(&query, Part::Of(None))?;
    Ok(Json(caller.harness.sessions().list(&listing).await.map_err(|error| app.unreadable(&error))?))
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<SessionView>, Problem> {
    Ok(Json(match app.session(&caller, &id).await {
        Ok(session) => view::open(&session),
        Err(refused) => app.record(&caller, &id, refused)?.view().await?,
    }))
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
    reader: Reader,
    Path(id): Path<String>,
    Query(query): Query<FleetQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = reader.of(&id)?;
    let through = caller.through();
    let source = events::source(&app, &caller, &id).await?;
    let fleet = match query.at.or(through) {
        Some(seq) => {
            let gone = || Problem::not_found("event", &seq.to_string());
            let is_shown = |seq| through.is_none_or(|through| seq <= through);
            let fleet = if is_shown(seq) { source.fleet_at(&app, seq).await } else { None };
            // The state begins later if the first events were deleted.
            fleet.filter(|fleet| is_shown(fleet.seq)).ok_or_else(gone)?
        }
        None => source.fleet(&app).await?,
    };
    let tag = format!("\"{}\"", fleet.seq);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if known.split(',').any(|one| one.trim() == tag || one.trim() == "*") {
        return Ok((StatusCode::NOT_MODIFIED, [VARY], [(header::ETAG, tag)]).into_response());
    }
    Ok(([VARY], [(header::ETAG, tag)], Json(fleet)).into_response())
}

/// What every agent is doing, up to an event that is committed: the reader can go on after it, also
/// after a crash.
pub(crate) async fn committed_fleet(session: &Session) -> Result<FleetState, Problem> {
    AnySession::fleet(session).await.map_err(|_| unrecorded())
}
