//! `GET /sessions`, `GET`, `DELETE /sessions/{id}`, `GET /sessions/{id}/runs`, `GET /sessions/{id}/fleet`.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::journal::SessionSummary;
use serde_json::{Value, json};

use crate::{
    app::{App, Conversation, lock, unreadable},
    caller::Caller,
    problem::Problem,
    runs,
};

pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Value>, Problem> {
    let kept = match caller.harness.journal() {
        Some(journal) => journal.sessions().await.map_err(|error| unreadable(&error))?,
        None => Vec::new(),
    };
    // What is open here is known better than what is kept.
    let mut items: BTreeMap<_, _> =
        kept.iter().map(|kept| (kept.id.to_string(), describe_kept(kept))).collect();
    items
        .extend(app.sessions(&caller).into_iter().map(|(id, session)| (id.clone(), describe(&id, &session))));
    Ok(Json(json!({ "items": items.into_values().collect::<Vec<_>>() })))
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(describe(&id, &*app.session(&caller, &id).await?)))
}

pub(crate) async fn list_runs(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let conversation = app.session(&caller, &id).await?;
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
    let conversation = app.session(&caller, &id).await?;
    let fleet = conversation.session.fleet();
    let tag = format!("\"{}\"", fleet.seq);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if known.split(',').any(|one| one.trim() == tag || one.trim() == "*") {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    Ok(([(header::ETAG, tag)], Json(fleet)).into_response())
}

fn describe_kept(kept: &SessionSummary) -> Value {
    json!({
        "id": kept.id,
        "created_at": kept.created_at,
        "last_seq": kept.last,
        "active_run": null,
        "runs": kept.runs,
    })
}

fn describe(id: &str, conversation: &Conversation) -> Value {
    let session = &conversation.session;
    json!({
        "id": id,
        "created_at": conversation.created_at,
        "last_seq": session.log().last_seq(),
        "active_run": session.active().map(|run| run.id().clone()),
        "runs": conversation.earlier_runs + lock(&conversation.runs).len() as u64,
    })
}
