//! HTTP+JSON: a handler for each path.

use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use mainstem_a2a::sdk::{ListTasksRequest, SendMessageRequest, TaskPushNotificationConfig};
use serde::Deserialize;

use super::{Call, card, lists, messages, push, refusal::Refusal, rpc::Answer, tasks};
use crate::body::{Body, Path, Query};

/// The media type of the binding.
pub(super) const JSON: &str = "application/a2a+json";

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        match self {
            Self::Json(result) => ([(header::CONTENT_TYPE, JSON)], result.to_string()).into_response(),
            Self::Stream(response) => response,
        }
    }
}

type Answered = Result<Answer, Refusal>;

/// The segments of the path.
#[derive(Deserialize)]
pub(super) struct Segments {
    tenant: Option<String>,
    #[serde(default)]
    id: String,
    #[serde(default)]
    config: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GetQuery {
    history_length: Option<i32>,
}

fn to_agent(mut request: SendMessageRequest, path: Segments) -> SendMessageRequest {
    request.tenant = path.tenant.or(request.tenant);
    request
}

pub(super) async fn send(
    call: Call,
    Path(path): Path<Segments>,
    Body(request, _): Body<SendMessageRequest>,
) -> Answered {
    call.check_version()?;
    messages::send(&call, to_agent(request, path)).await
}

pub(super) async fn stream(
    call: Call,
    Path(path): Path<Segments>,
    Body(request, _): Body<SendMessageRequest>,
) -> Answered {
    call.check_version()?;
    messages::stream(&call, to_agent(request, path)).await
}

pub(super) async fn list(call: Call, Query(query): Query<ListTasksRequest>) -> Answered {
    call.check_version()?;
    lists::list(&call, query).await
}

pub(super) async fn get(call: Call, Path(path): Path<Segments>, Query(query): Query<GetQuery>) -> Answered {
    call.check_version()?;
    match path.id.strip_suffix(":subscribe") {
        Some(id) => tasks::subscribe(&call, id).await,
        None => tasks::get_by_id(&call, &path.id, query.history_length).await,
    }
}

pub(super) async fn act(call: Call, Path(path): Path<Segments>) -> Answered {
    call.check_version()?;
    match path.id.rsplit_once(':') {
        Some((id, "cancel")) => tasks::cancel(&call, id).await,
        Some((id, "subscribe")) => tasks::subscribe(&call, id).await,
        _ => Err(Refusal::unsupported("a task takes `:cancel` and `:subscribe`")),
    }
}

pub(super) async fn create_push(
    call: Call,
    Path(path): Path<Segments>,
    Body(config, _): Body<TaskPushNotificationConfig>,
) -> Answered {
    call.check_version()?;
    push::create(&call, TaskPushNotificationConfig { task_id: path.id, ..config }).await
}

pub(super) async fn list_pushes(call: Call, Path(path): Path<Segments>) -> Answered {
    call.check_version()?;
    push::list(&call, &path.id).await
}

pub(super) async fn get_push(call: Call, Path(path): Path<Segments>) -> Answered {
    call.check_version()?;
    push::get(&call, &path.id, &path.config).await
}

pub(super) async fn delete_push(call: Call, Path(path): Path<Segments>) -> Answered {
    call.check_version()?;
    push::delete(&call, &path.id, &path.config).await
}

pub(super) async fn extended_card(call: Call, Path(path): Path<Segments>) -> Answered {
    call.check_version()?;
    card::extended(&call, path.tenant.as_deref())
}
