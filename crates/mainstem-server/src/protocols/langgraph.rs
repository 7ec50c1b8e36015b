//! Threads and runs as LangGraph's server has them, below `/lg`: for its SDKs, unchanged.
//!
//! A thread is a session, an assistant an agent that may lead a run. A run that asks for approval
//! ends its streams with an interrupt; a request with `command.resume` answers, and streams the
//! rest of the same run. What has no place here is refused, with the reason in `detail`.

mod assistants;
mod following;
mod request;
mod resume;
mod runs;
mod threads;

use std::sync::Arc;

use axum::{
    Json, Router,
    http::{StatusCode, header},
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::json;

use super::post_with_body;
use crate::{app::App, problem::Problem};

/// The version that `/info` names: that of the API of LangGraph's server.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the routes.
pub(super) fn routes() -> Router<Arc<App>> {
    let routes = Router::new()
        .route("/ok", get(async || Json(json!({ "ok": true }))))
        .route("/info", get(async || Json(json!({ "version": VERSION, "flags": { "assistants": true } }))))
        .route("/assistants/search", post_with_body(assistants::search))
        .route("/assistants/{id}", get(assistants::get))
        .route("/threads", post_with_body(threads::create))
        .route("/threads/search", post_with_body(threads::search))
        .route("/threads/{id}", get(threads::get).delete(threads::delete))
        .route("/threads/{id}/state", get(threads::state))
        .route("/threads/{id}/history", get(threads::history).merge(post_with_body(threads::post_history)))
        .route("/threads/{id}/runs", get(runs::list).merge(post_with_body(runs::create)))
        .route("/threads/{id}/runs/stream", post_with_body(runs::stream))
        .route("/threads/{id}/runs/wait", post_with_body(runs::wait))
        .route("/threads/{id}/runs/{run}", get(runs::get))
        .route("/threads/{id}/runs/{run}/stream", get(runs::join_stream))
        .route("/threads/{id}/runs/{run}/join", get(runs::join))
        .route("/threads/{id}/runs/{run}/cancel", post(runs::cancel))
        .route("/runs", post_with_body(runs::create_stateless))
        .route("/runs/stream", post_with_body(runs::stream_stateless))
        .route("/runs/wait", post_with_body(runs::wait_stateless))
        .fallback(async || (StatusCode::NOT_FOUND, Json(json!({ "detail": "Not Found" }))));
    Router::new().nest("/lg", routes.layer(map_response(in_their_form)))
}

/// Makes `{"detail": …}` of a problem, which is how LangGraph's server refuses.
async fn in_their_form(response: Response) -> Response {
    let Some(problem) = response.extensions().get::<Problem>() else { return response };
    let problem = problem.value();
    let (mut parts, _) = response.into_parts();
    let refusal =
        json!({ "detail": problem["detail"], "code": problem["code"], "errors": problem["errors"] });
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.remove(header::CONTENT_TYPE);
    let body = Json(refusal).into_response();
    parts.headers.extend(body.headers().clone());
    Response::from_parts(parts, body.into_body())
}
