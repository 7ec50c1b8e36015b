//! `GET /sessions`, `GET`, `DELETE /sessions/{id}`, `GET /sessions/{id}/runs`, `GET /sessions/{id}/fleet`.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::{
    app::{App, Conversation, lock},
    caller::Caller,
    problem::Problem,
    runs,
};

pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Json<Value> {
    let items: Vec<_> = app.sessions(&caller).iter().map(|(id, session)| describe(id, session)).collect();
    Json(json!({ "items": items }))
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(describe(&id, &*app.session(&caller, &id)?)))
}

pub(crate) async fn list_runs(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let conversation = app.session(&caller, &id)?;
    let ids = lock(&conversation.runs).clone();
    let runs = ids.iter().filter_map(|id| app.run(&caller, id.as_str()).ok());
    Ok(Json(json!({ "items": runs.map(|run| runs::describe(&run)).collect::<Vec<_>>() })))
}

pub(crate) async fn fleet(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let conversation = app.session(&caller, &id)?;
    let fleet = conversation.session.fleet();
    let tag = format!("\"{}\"", fleet.seq);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if known.split(',').any(|one| one.trim() == tag || one.trim() == "*") {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    Ok(([(header::ETAG, tag)], Json(fleet)).into_response())
}

fn describe(id: &str, conversation: &Conversation) -> Value {
    let session = &conversation.session;
    json!({
        "id": id,
        "created_at": conversation.created_at,
        "last_seq": session.log().last_seq(),
        "active_run": session.active().map(|run| run.id().clone()),
        "runs": lock(&conversation.runs).len(),
    })
}
