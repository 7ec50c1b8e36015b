//! `/sessions/{id}/agents/{key}…` and `/sessions/{id}/confirmations/{id}`: messages, cancels and
//! approvals.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use mainstem::{
    event::{
        AgentState, ChildStatus, ChildSummary,
        fold::{Conversation, ROOT},
    },
    message::{AgentKey, Message, RunId, ToolCallId},
    session::refusal,
};
use mainstem_api::{AnySession, Approval, Approved, CancelledAgent, Items, NewMessage, NewToolResult};

use crate::{
    app::App,
    body::{Body, Path},
    caller::{Caller, Reader},
    events,
    idempotency::{self, KeyedRequest},
    problem::Problem,
    sessions,
};

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Items<ChildSummary>>, Problem> {
    let items = match app.session(&caller, &id).await {
        Ok(session) => session.children(),
        Err(refused) => app.record(&caller, &id, refused)?.children().await?,
    };
    Ok(Json(Items { items }))
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, key)): Path<(String, String)>,
) -> Result<Json<AgentState>, Problem> {
    let session = app.session(&caller, &id).await?;
    let fleet = sessions::committed_fleet(&session).await?;
    let agent = fleet.agent(&key.parse()?).ok_or_else(|| Problem::not_found("agent", &key))?;
    Ok(Json(agent.clone()))
}

/// Returns an agent's conversation; the key of the root is `root`.
pub(crate) async fn transcript(
    State(app): State<Arc<App>>,
    reader: Reader,
    Path((id, key)): Path<(String, String)>,
) -> Result<Json<mainstem_api::Transcript>, Problem> {
    let caller = reader.of(&id)?;
    let source = events::source(&app, &caller, &id).await?;
    let mut conversation = Conversation::of(key.parse()?);
    let mut cursor = source.log().committed_from(1);
    let mut count = 0_usize;
    while let Some(event) = cursor.at_hand().await {
        count += 1;
        if count.is_multiple_of(1024) {
            tokio::task::yield_now().await;
        }
        if caller.through().is_some_and(|through| event.seq > through) {
            break;
        }
        conversation.apply(&event);
    }
    if !conversation.has_begun() && key != ROOT {
        return Err(Problem::not_found("agent", &key));
    }
    let messages = conversation.messages().map(|message| Message::clone(message));
    Ok(Json(mainstem_api::Transcript { agent_key: key, messages: messages.collect() }))
}

pub(crate) async fn send(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, key)): Path<(String, String)>,
    headers: HeaderMap,
    Body(message, digest): Body<NewMessage>,
) -> Result<StatusCode, Problem> {
    let session = app.session(&caller, &id).await?;
    let key: AgentKey = key.parse()?;
    let is_open = |child: &ChildSummary| child.agent_key == key && child.status != ChildStatus::Closed;
    // A message that would be refused claims no key.
    let is_deliverable = match key.as_str() {
        ROOT => session.active().is_some(),
        _ => session.children().iter().any(is_open),
    };
    if let Some(name) = idempotency::key(&headers)?.filter(|_| is_deliverable) {
        let request = KeyedRequest {
            key: name,
            digest: &digest,
            session: session.id().clone(),
            run: RunId::from_lossy(format!("to:{key}")),
        };
        // At most once: a message whose key was claimed is not sent again, even if the process
        // ended before it was delivered.
        if app.idempotency.claim(&app, &caller, request).await?.1 {
            return Ok(StatusCode::ACCEPTED);
        }
    }
    let sent = session.send(&key, message.content, message.mode);
    sent.map_err(|error| refusal::no_message(&error))?;
    Ok(StatusCode::ACCEPTED)
}

pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, key)): Path<(String, String)>,
) -> Result<(StatusCode, Json<CancelledAgent>), Problem> {
    let session = app.session(&caller, &id).await?;
    let key: AgentKey = key.parse()?;
    if !session.children().iter().any(|child| child.agent_key == key) {
        return Err(Problem::not_found("agent", key.as_str()));
    }
    let was_running = session.cancel_agent(&key);
    Ok((StatusCode::ACCEPTED, Json(CancelledAgent { was_running })))
}

pub(crate) async fn confirm(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, confirm)): Path<(String, String)>,
    Body(approval, _): Body<Approval>,
) -> Result<Json<Approved>, Problem> {
    let session = app.session(&caller, &id).await?;
    let answered = session.confirm(&confirm.parse()?, approval.into());
    answered.map_err(|error| refusal::no_answer(&error))?;
    Ok(Json(Approved { confirm_id: confirm }))
}

pub(crate) async fn submit(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, call)): Path<(String, String)>,
    Body(result, _): Body<NewToolResult>,
) -> Result<StatusCode, Problem> {
    let session = app.session(&caller, &id).await?;
    AnySession::submit(&session, &ToolCallId::new(call.as_str()), &result).await?;
    Ok(StatusCode::ACCEPTED)
}
