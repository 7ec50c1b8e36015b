//! `/sessions/{id}/agents/{key}…` and `/sessions/{id}/confirmations/{id}`: steering from outside.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use mainstem::{
    event::SendMode,
    message::{AgentKey, ConfirmId},
    prelude::Decision,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{app::App, body::Body, caller::Caller, problem::Problem};

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let conversation = app.session(&caller, &id).await?;
    Ok(Json(json!({ "items": conversation.session.children() })))
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, key)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let conversation = app.session(&caller, &id).await?;
    let fleet = conversation.session.fleet();
    let agent = fleet.agent(&AgentKey::new(key.as_str())).ok_or_else(|| Problem::not_found("agent", &key))?;
    Ok(Json(json!(agent)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    content: String,
    #[serde(default)]
    mode: Mode,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Queue,
    Steer,
    Interrupt,
}

pub(crate) async fn send(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, key)): Path<(String, String)>,
    Body(said): Body<Said>,
) -> Result<StatusCode, Problem> {
    let conversation = app.session(&caller, &id).await?;
    let mode = match said.mode {
        Mode::Queue => SendMode::Queue,
        Mode::Steer => SendMode::Steer,
        Mode::Interrupt => SendMode::Interrupt,
    };
    let sent = conversation.session.send(&AgentKey::new(key.as_str()), said.content, mode);
    sent.map_err(|error| Problem::new(StatusCode::NOT_FOUND, "unknown_agent", error.to_string()))?;
    Ok(StatusCode::ACCEPTED)
}

pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, key)): Path<(String, String)>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let conversation = app.session(&caller, &id).await?;
    let key = AgentKey::new(key.as_str());
    if !conversation.session.children().iter().any(|child| child.agent_key == key) {
        return Err(Problem::not_found("agent", key.as_str()));
    }
    let was_at_work = conversation.session.cancel_agent(&key);
    Ok((StatusCode::ACCEPTED, Json(json!({ "was_at_work": was_at_work }))))
}

#[derive(Deserialize)]
#[serde(tag = "decision", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Answer {
    Allow {
        /// In the place of the model's.
        arguments: Option<Value>,
    },
    Deny {
        reason: Option<String>,
    },
}

pub(crate) async fn confirm(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, confirm)): Path<(String, String)>,
    Body(answer): Body<Answer>,
) -> Result<Json<Value>, Problem> {
    let conversation = app.session(&caller, &id).await?;
    let decision = match answer {
        Answer::Allow { arguments: None } => Decision::Allow,
        Answer::Allow { arguments: Some(arguments) } => Decision::AllowWith(arguments),
        Answer::Deny { reason } => Decision::Deny(reason.unwrap_or_else(|| "a person said no".to_owned())),
    };
    let answered = conversation.session.confirm(&ConfirmId::new(confirm.as_str()), decision);
    answered.map_err(|error| Problem::new(StatusCode::CONFLICT, "not_asked", error.to_string()))?;
    Ok(Json(json!({ "confirm_id": confirm })))
}
