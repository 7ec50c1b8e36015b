//! Agent2Agent 1.0: `/.well-known/agent-card.json`, JSON-RPC at `/a2a`, HTTP+JSON below it.
//!
//! A run is a task, its session the task's context. The agent that leads is the `tenant` of a
//! request, in HTTP+JSON a segment of the path: `/a2a/{agent}/message:send`.

mod call;
mod card;
mod lists;
mod messages;
mod push;
mod refusal;
mod rest;
mod rpc;
mod tasks;

use std::sync::Arc;

use axum::{Router, middleware::from_fn, routing::get};

use self::call::Call;
pub(crate) use self::push::{MAX_CONFIGS, MAX_TASKS, Pushes};
use super::post_with_body;
use crate::app::App;

/// The path below which both bindings are.
const PATH: &str = "/a2a";

/// The path of the card, below the server's address and below an agent's path.
const CARD: &str = "/.well-known/agent-card.json";

/// Returns the routes.
pub(super) fn routes() -> Router<Arc<App>> {
    let rpc = Router::new().route(PATH, post_with_body(rpc::post)).layer(from_fn(refusal::as_rpc));
    let rest = operations(PATH)
        .merge(operations(&format!("{PATH}/{{tenant}}")))
        .route(CARD, get(card::public))
        .route(&format!("{PATH}/{{tenant}}{CARD}"), get(card::of_agent))
        .layer(from_fn(refusal::as_rest));
    rpc.merge(rest)
}

/// Returns the operations of HTTP+JSON below a path.
fn operations(path: &str) -> Router<Arc<App>> {
    let at = |place: &str| format!("{path}{place}");
    Router::new()
        .route(&at("/message:send"), post_with_body(rest::send))
        .route(&at("/message:stream"), post_with_body(rest::stream))
        .route(&at("/tasks"), get(rest::list))
        // `{id}:cancel`, and `{id}:subscribe`: a GET in the specification, a POST in SDKs.
        .route(&at("/tasks/{id}"), get(rest::get).post(rest::act))
        .route(
            &at("/tasks/{id}/pushNotificationConfigs"),
            post_with_body(rest::create_push).get(rest::list_pushes),
        )
        .route(
            &at("/tasks/{id}/pushNotificationConfigs/{config}"),
            get(rest::get_push).delete(rest::delete_push),
        )
        .route(&at("/extendedAgentCard"), get(rest::extended_card))
}
