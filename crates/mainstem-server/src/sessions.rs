//! `GET /sessions`, `GET`, `DELETE /sessions/{id}`, `GET /sessions/{id}/fleet`.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::session::view;
use mainstem_api::{Items, SessionView};

use crate::{
    app::{App, is_id},
    body::Path,
    caller::Caller,
    conversation::Conversation,
    problem::Problem,
};

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<Items<SessionView>>, Problem> {
    let mut recorded = match caller.harness.journal() {
        Some(journal) => journal.sessions().await.map_err(|error| app.unreadable(&error))?,
        None => Vec::new(),
    };
    // Those of tenants, and what only programs can name.
    recorded.retain(|session| is_id(session.id.as_str()));
    // An open session is more recent than its record.
    let mut items: BTreeMap<_, _> =
        recorded.iter().map(|session| (session.id.to_string(), view::recorded(session, false))).collect();
    items.extend(app.sessions(&caller).into_iter().map(|(id, session)| (id, describe(&session))));
    Ok(Json(Items { items: items.into_values().collect() }))
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<SessionView>, Problem> {
    Ok(Json(describe(&*app.session(&caller, &id).await?)))
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
    let conversation = app.session(&caller, &id).await?;
    let fleet = conversation.fleet().await?;
    let tag = format!("\"{}\"", fleet.seq);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if known.split(',').any(|one| one.trim() == tag || one.trim() == "*") {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    Ok(([(header::ETAG, tag)], Json(fleet)).into_response())
}

fn describe(conversation: &Conversation) -> SessionView {
    view::open(&conversation.session, conversation.first_seq, conversation.created_at)
}
