//! `GET /sessions/{id}/events`, `/tasks/{id}/events`: recorded events, then live ones.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::{
    event::{AgentEvent, EventKind},
    message::RunId,
    prelude::Session,
    session::FoundRun,
};
use mainstem_api::{Code, Detail, EventQuery, StreamForm};

use crate::{
    app::App,
    body::{Path, Query},
    caller::Caller,
    feed::{Available, Subscription, Until, available, encoder, respond},
    prefix::Prefix,
    problem::Problem,
    readers::ReaderPermit,
    runs, tasks,
};

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(params): Query<EventQuery>,
    prefix: Prefix,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let session = app.session(&caller, &id).await?;
    let run = match &params.run {
        Some(id) => Some(run_of(&app, &caller, &session, id).await?),
        None => None,
    };
    let scope = match run {
        Some(run) => Scope { first: run.first(), is_over: run.is_over(), until: runs::until(&run) },
        None => Scope { first: 1, is_over: false, until: Until::Never },
    };
    serve(&app, &caller, &session, Parts { params, prefix, headers }, scope).await
}

/// `GET /tasks/{id}/events`: the events of a background task, to its end.
pub(crate) async fn of_task(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(params): Query<EventQuery>,
    prefix: Prefix,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let task = tasks::find(&caller, &id).await?;
    let session = app.session(&caller, task.root_session_id.as_str()).await?;
    let scope = Scope { first: 1, is_over: task.is_over(), until: Until::TaskIsOver(task.id) };
    serve(&app, &caller, &session, Parts { params, prefix, headers }, scope).await
}

/// `GET /sessions/{id}/events/{seq}`: one event, however large it is.
pub(crate) async fn one(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, seq)): Path<(String, String)>,
) -> Result<Json<AgentEvent>, Problem> {
    let session = app.session(&caller, &id).await?;
    let log = session.log();
    let wanted = seq.parse().ok().filter(|wanted| (1..=log.last_seq()).contains(wanted));
    let wanted = wanted.ok_or_else(|| Problem::not_found("event", &seq))?;
    let found = log.committed_from(wanted).at_hand().await;
    let found = found.filter(|event| event.seq == wanted && !matches!(event.kind, EventKind::Gap { .. }));
    found.map(|event| Json(event.without_spec())).ok_or_else(|| gone(wanted + 1))
}

/// The requested part of a session.
struct Scope {
    /// The number of its first event, or of an earlier one.
    first: u64,
    /// Whether it gets no more events.
    is_over: bool,
    until: Until,
}

/// The parts of a request that decide its response.
struct Parts {
    params: EventQuery,
    prefix: Prefix,
    headers: HeaderMap,
}

async fn serve(
    app: &Arc<App>,
    caller: &Caller,
    session: &Session,
    Parts { params, prefix, headers }: Parts,
    scope: Scope,
) -> Result<Response, Problem> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let encoder = encoder(StreamForm::accepted(accept).unwrap_or(StreamForm::Sse), prefix);
    let subscription = Subscription {
        filter: params.filter()?,
        lifecycle: params.detail == Detail::Lifecycle,
        until: scope.until,
        follow: params.is_following(),
    };
    let after = match last_event_id(&headers)? {
        Some(last) => last,
        None => params.after.unwrap_or(0),
    };
    let log = session.log();
    if after > log.last_seq() {
        let detail = format!("there is no event {after} yet; the latest is {}", log.last_seq());
        return Err(Problem::new(Code::BadCursor, detail));
    }
    let from = (after + 1).max(scope.first);
    let is_complete = !subscription.follow || scope.is_over;
    match available(log.committed_from(from), &subscription, is_complete).await {
        Available::After { oldest } => return Err(gone(oldest)),
        // A browser's EventSource reconnects unless it gets a 204.
        Available::Nothing => return Ok(StatusCode::NO_CONTENT.into_response()),
        Available::Something => {}
    }
    let permit = ReaderPermit::acquire(app, caller, session)?;
    Ok(respond(app, log.committed_from(from), encoder, subscription, permit, None))
}

fn gone(oldest: u64) -> Problem {
    let before = oldest - 1;
    let detail = format!("events up to {before} are no longer stored; begin with after={before}");
    Problem::new(Code::Gone, detail).with("oldest_seq", oldest)
}

/// Returns a run of this session.
async fn run_of(app: &App, caller: &Caller, session: &Session, id: &RunId) -> Result<FoundRun, Problem> {
    let run = app.find_run(caller, id).await?;
    let is_of_session = run.session().id() == session.id();
    if is_of_session { Ok(run) } else { Err(Problem::not_found("run", id.as_str())) }
}

/// Returns the last event that a reconnecting reader has seen.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let wrong = || Problem::new(Code::BadCursor, "Last-Event-ID is not the number of an event");
    number.map(Some).ok_or_else(wrong)
}
