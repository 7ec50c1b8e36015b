//! The streams of Arbiter: `POST /v1/orchestrate`, and the events of its requests. A request is a
//! run, and a conversation a session.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use mainstem::{
    encode::Fleet,
    event::{CancelReason, Ids, RandomIds},
};
use mainstem_api::NewRun;
use serde::Deserialize;
use serde_json::{Value, json};

use super::post_with_body;
use crate::{
    app::App,
    body::{Body, Path, Query},
    caller::Caller,
    events::{Reading, last_event_id},
    idempotency,
    problem::Problem,
    runs::{self, BegunRun, NewRunOf},
};

/// Returns the routes.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/orchestrate", post_with_body(orchestrate))
        .route("/v1/requests/{id}/events", get(events))
        .route("/v1/requests/{id}/cancel", post(cancel))
}

/// A request to an agent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Orchestrate {
    /// By default the one that leads the server's runs.
    agent: Option<String>,
    message: String,
    /// The session; a new one by default.
    conversation_id: Option<String>,
}

/// Begins a run, and streams it.
async fn orchestrate(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Body(request, digest): Body<Orchestrate>,
) -> Result<Response, Problem> {
    let key = idempotency::key(&headers)?.map(|key| (key, &digest));
    // A request that is repeated with its key finds the session of the first.
    let name = key.as_ref().map_or_else(|| RandomIds.next("fleet-"), |_| format!("fleet-{digest}"));
    let session = request.conversation_id.unwrap_or(name);
    let run = NewRun { agent: request.agent, ..NewRun::new(request.message.as_str()) };
    let begun = NewRunOf { session: &session, run, key, is_read: true }.begin(&app, &caller).await?;
    caller.release_permit();
    let BegunRun { run, reader: Some(permit), .. } = begun else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    Ok(runs::follow(&app, &run, Box::new(Fleet::new()), permit, false))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Since {
    since_seq: Option<u64>,
}

/// Streams the events of a request after a number, then live ones.
async fn events(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(Since { since_seq }): Query<Since>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = app.run(&caller, &id).await?;
    let after = last_event_id(&headers)?.or(since_seq).unwrap_or(0);
    Reading::of_run(&run, after).respond(&app, &caller, Box::new(Fleet::new())).await
}

/// Cancels a request. One that is over is not cancelled, which is not an error.
async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let run = app.run(&caller, &id).await?;
    let is_active = run.handle().is_some() && !run.is_over();
    if let Some(run) = run.handle() {
        run.cancel_with_tasks(CancelReason::user("the request was cancelled"));
    }
    Ok(Json(json!({ "request_id": id, "cancelled": is_active })))
}
