//! `/threads`: sessions, and their states.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use mainstem::{
    event::{Ids, RandomIds},
    journal::{Listing, Part},
    prelude::Session,
    session::view,
};
use mainstem_api::{SessionState, SessionView};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    following::{questions, state_before},
    resume::Question,
};
use crate::{
    app::App,
    body::{Body, Path},
    caller::Caller,
    problem::Problem,
};

/// How many sessions are read at once.
const PAGE: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NewThread {
    thread_id: Option<String>,
    if_exists: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Search {
    status: Option<String>,
    limit: Option<usize>,
    offset: Option<usize>,
}

/// The settings of a search that has no effect: a thread has one state here.
#[derive(Debug, Default, Deserialize)]
pub(super) struct HistorySearch {}

pub(super) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(thread, _): Body<NewThread>,
) -> Result<Json<Value>, Problem> {
    let id = thread.thread_id.unwrap_or_else(new_id);
    if thread.if_exists.as_deref() != Some("do_nothing")
        && let Ok(known) = app.session(&caller, &id).await
        && known.log().last_seq() > 0
    {
        let detail = format!("thread {id:?} exists; `if_exists: \"do_nothing\"` returns it");
        return Err(Problem::new(mainstem_api::Code::RunActive, detail));
    }
    let session = app.open(&caller, &id).await?;
    Ok(Json(shown(&session).await))
}

/// Returns the id of a new thread: a UUID.
pub(super) fn new_id() -> String {
    RandomIds.next("")
}

pub(super) async fn search(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(search, _): Body<Search>,
) -> Result<Json<Vec<Value>>, Problem> {
    let (skipped, limit) = (search.offset.unwrap_or(0), search.limit.unwrap_or(10));
    let wanted = |thread: &Value| search.status.as_ref().is_none_or(|status| thread["status"] == **status);
    let mut listing = Listing::new(Part::Of(None), PAGE);
    let mut found = Vec::new();
    loop {
        let page = caller.harness.sessions().list(&listing).await.map_err(|error| app.unreadable(&error))?;
        let threads = page.items.iter().map(|session| thread(session, status(session), json!({}), &[]));
        found.extend(threads.filter(wanted));
        // A page's `next` is a place.
        listing.after = page.next.and_then(|next| next.parse().ok());
        if listing.after.is_none() || found.len() >= skipped.saturating_add(limit) {
            return Ok(Json(found.into_iter().skip(skipped).take(limit).collect()));
        }
    }
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(shown(&app.session(&caller, &id).await?).await))
}

pub(super) async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    app.delete(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn state(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let session = app.session(&caller, &id).await?;
    let state = state_before(&session, u64::MAX).await;
    Ok(Json(checkpoint(&session, &state.values(), &asked(&session).await)))
}

pub(super) async fn history(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Vec<Value>>, Problem> {
    let session = app.session(&caller, &id).await?;
    let state = state_before(&session, u64::MAX).await;
    if state.is_empty() {
        return Ok(Json(Vec::new()));
    }
    Ok(Json(vec![checkpoint(&session, &state.values(), &asked(&session).await)]))
}

pub(super) async fn post_history(
    state: State<Arc<App>>,
    caller: Caller,
    path: Path<String>,
    Body(HistorySearch {}, _): Body<HistorySearch>,
) -> Result<Json<Vec<Value>>, Problem> {
    history(state, caller, path).await
}

async fn shown(session: &Session) -> Value {
    let (view, asked) = (view::open(session), asked(session).await);
    let status = if asked.is_empty() { status(&view) } else { "interrupted" };
    let values = state_before(session, u64::MAX).await.values();
    thread(&view, status, values, &asked)
}

/// Returns what the active run asks.
async fn asked(session: &Session) -> Vec<Question> {
    let active = session.active().and_then(|run| session.find_run(run.id()));
    match active {
        Some(run) => questions(&run).await.open,
        None => Vec::new(),
    }
}

fn thread(view: &SessionView, status: &str, values: Value, asked: &[Question]) -> Value {
    json!({
        "thread_id": view.id,
        "created_at": view.created_at,
        "updated_at": view.updated_at,
        "state_updated_at": view.updated_at,
        "metadata": {},
        "config": {},
        "status": status,
        "values": values,
        "interrupts": if asked.is_empty() { json!({}) } else { json!({ "main": interrupts(asked) }) },
    })
}

fn status(view: &SessionView) -> &'static str {
    match view.state {
        SessionState::Idle => "idle",
        SessionState::Running => "busy",
        SessionState::Unfinished => "interrupted",
        _ => "error",
    }
}

fn interrupts(asked: &[Question]) -> Value {
    asked.iter().map(|one| mainstem::encode::langgraph_interrupt(&one.id, &one.calls)).collect()
}

fn checkpoint(session: &Session, values: &Value, asked: &[Question]) -> Value {
    let (view, interrupts) = (view::open(session), interrupts(asked));
    let task = json!({ "id": "main", "name": "tools", "error": null, "interrupts": interrupts, "checkpoint": null, "state": null, "result": null });
    let is_asking = !asked.is_empty();
    json!({
        "values": values,
        "next": if is_asking { json!(["tools"]) } else { json!([]) },
        "tasks": if is_asking { json!([task]) } else { json!([]) },
        "interrupts": interrupts,
        "metadata": {},
        "created_at": view.updated_at,
        "checkpoint": { "thread_id": view.id, "checkpoint_ns": "", "checkpoint_id": view.last_seq.to_string() },
        "parent_checkpoint": null,
    })
}
