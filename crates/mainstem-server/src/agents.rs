//! `/sessions/{id}/agents/{key}…` and `/sessions/{id}/confirmations/{id}`: steering from outside.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use mainstem::{
    event::{AgentEvent, AgentState, SendMode, fold::Transcript},
    message::{AgentKey, ConfirmId, Message, RunId},
    prelude::Decision,
    subagent::{ChildStatus, ChildSummary, SpawnError},
};

use crate::{
    app::App,
    body::{Body, Path},
    caller::Caller,
    feed::at_hand,
    once::{self, Asked},
    problem::Problem,
    wire::{self, Answer, Answered, Items, Mode, Said, Stopped},
};

/// What stands for the key of the agent that has none.
const ROOT: &str = "root";

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Items<ChildSummary>>, Problem> {
    let conversation = app.session(&caller, &id).await?;
    Ok(Json(Items { items: conversation.session.children() }))
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, key)): Path<(String, String)>,
) -> Result<Json<AgentState>, Problem> {
    let conversation = app.session(&caller, &id).await?;
    let fleet = conversation.fleet().await?;
    let agent = fleet.agent(&AgentKey::new(key.as_str())).ok_or_else(|| Problem::not_found("agent", &key))?;
    Ok(Json(agent.clone()))
}

/// What an agent was told and said: the root's key is `root`.
pub(crate) async fn transcript(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, key)): Path<(String, String)>,
) -> Result<Json<wire::Transcript>, Problem> {
    let conversation = app.session(&caller, &id).await?;
    let is_meant = |event: &AgentEvent| match event.source() {
        Some(source) => source.agent_key.as_str() == key,
        None => key == ROOT,
    };
    let (mut said, mut is_known) = (Vec::<Transcript>::new(), key == ROOT);
    let mut places = HashMap::new();
    let mut cursor = conversation.session.log().committed_from(1);
    let mut count = 0_usize;
    while let Some(event) = at_hand(&mut cursor).await {
        count += 1;
        if count.is_multiple_of(1024) {
            tokio::task::yield_now().await;
        }
        let Some(reply) = event.reply_id().filter(|_| is_meant(&event)) else { continue };
        is_known = true;
        let place = *places.entry(reply.clone()).or_insert_with(|| {
            said.push(Transcript::new(reply.clone()));
            said.len() - 1
        });
        said[place].apply(&event.kind);
    }
    if !is_known {
        return Err(Problem::not_found("agent", &key));
    }
    let messages = said.iter().flat_map(Transcript::messages).map(|message| Message::clone(message));
    Ok(Json(wire::Transcript { agent_key: key, messages: messages.collect() }))
}

pub(crate) async fn send(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, key)): Path<(String, String)>,
    headers: HeaderMap,
    Body(said, digest): Body<Said>,
) -> Result<StatusCode, Problem> {
    let conversation = app.session(&caller, &id).await?;
    // What is refused is not remembered as said.
    let is_open =
        |child: &ChildSummary| child.agent_key.as_str() == key && child.status != ChildStatus::Closed;
    let is_heard = conversation.session.children().iter().any(is_open);
    if let Some(name) = once::key(&headers)?.filter(|_| is_heard) {
        let session = conversation.session.id().clone();
        let asked = Asked { key: name, digest: &digest, session, run: RunId::new(format!("to {key}")) };
        // At most once: what was claimed is not said again, even if the process ended before it was heard.
        if app.once.claim(&app, &caller, asked).await?.1 {
            return Ok(StatusCode::ACCEPTED);
        }
    }
    let mode = match said.mode {
        Mode::Queue => SendMode::Queue,
        Mode::Steer => SendMode::Steer,
        Mode::Interrupt => SendMode::Interrupt,
    };
    let sent = conversation.session.send(&AgentKey::new(key.as_str()), said.content, mode);
    sent.map_err(|error| match error {
        SpawnError::UnknownChild { .. } => {
            Problem::new(StatusCode::NOT_FOUND, "unknown_agent", error.to_string())
        }
        error => Problem::new(StatusCode::CONFLICT, "agent_closed", error.to_string()),
    })?;
    Ok(StatusCode::ACCEPTED)
}

pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, key)): Path<(String, String)>,
) -> Result<(StatusCode, Json<Stopped>), Problem> {
    let conversation = app.session(&caller, &id).await?;
    let key = AgentKey::new(key.as_str());
    if !conversation.session.children().iter().any(|child| child.agent_key == key) {
        return Err(Problem::not_found("agent", key.as_str()));
    }
    let was_at_work = conversation.session.cancel_agent(&key);
    Ok((StatusCode::ACCEPTED, Json(Stopped { was_at_work })))
}

pub(crate) async fn confirm(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, confirm)): Path<(String, String)>,
    Body(answer, _): Body<Answer>,
) -> Result<Json<Answered>, Problem> {
    let conversation = app.session(&caller, &id).await?;
    let decision = match answer {
        Answer::Allow { arguments: None } => Decision::Allow,
        Answer::Allow { arguments: Some(arguments) } => Decision::AllowWith(arguments),
        Answer::Deny { reason } => Decision::Deny(reason.unwrap_or_else(|| "a person said no".to_owned())),
    };
    let answered = conversation.session.confirm(&ConfirmId::new(confirm.as_str()), decision);
    answered.map_err(|error| Problem::new(StatusCode::CONFLICT, "not_asked", error.to_string()))?;
    Ok(Json(Answered { confirm_id: confirm }))
}
