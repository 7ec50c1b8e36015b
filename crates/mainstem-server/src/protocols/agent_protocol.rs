//! AgentScope's Agent Protocol: `/tasks`. A task is a run of ours.
//!
//! A task that does not exist, or is another tenant's, is answered as AgentScope does: its status
//! is `error` with the error `task not found`, and its events are a 404.

mod state;
mod submission;

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::Body as HttpBody,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::StreamExt;
use mainstem::{
    encode::agent_protocol::{AgentProtocol, Finding, Resume, Snapshot, Status, Submit, Verdict},
    event::{CancelReason, Decision, EventKind},
    message::{ConfirmId, ToolCall},
    session::FoundRun,
};
use mainstem_api::Code;
use serde::Deserialize;
use tokio::time::{Instant, timeout, timeout_at};

use self::submission::{first_event, run_id};
use super::post_with_body;
use crate::{
    app::{App, shutting_down},
    body::{Body, Path, Query},
    caller::Caller,
    feed::{Available, Subscription, available, respond},
    problem::Problem,
    readers::ReaderPermit,
    runs,
};

/// How long `/wait` waits unless the request says, and at most.
const MAX_WAIT: Duration = Duration::from_hours(2);

/// How long `/resume` waits until the state of the task shows its answers.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

const DENIED: &str = "denied by the caller";

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/tasks", post_with_body(submit))
        .route("/tasks/{id}", get(status))
        .route("/tasks/{id}/wait", get(wait))
        .route("/tasks/{id}/cancel", post(cancel))
        .route("/tasks/{id}/events", get(events))
        .route("/tasks/{id}/resume", post_with_body(resume))
        .layer(map_response(in_own_form))
}

/// Adds `error` to a refusal, where a client of the protocol looks for it.
async fn in_own_form(response: Response) -> Response {
    let Some(problem) = response.extensions().get::<Problem>() else { return response };
    let mut json = problem.value();
    json["error"] = json["detail"].clone();
    let (mut parts, _) = response.into_parts();
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, HttpBody::from(json.to_string()))
}

fn refused(status: StatusCode, error: impl Into<String>) -> Response {
    (status, Json(Finding { error: error.into() })).into_response()
}

/// Returns a caller's task.
async fn find(app: &Arc<App>, caller: &Caller, id: &str) -> Result<Option<FoundRun>, Problem> {
    match app.find_run(caller, &run_id(caller, id)).await {
        Ok(found) => Ok(Some(found)),
        Err(problem) if problem.is_not_found() => Ok(None),
        Err(problem) => Err(problem),
    }
}

async fn submit(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(task, _): Body<Submit>,
) -> Result<Response, Problem> {
    let Some(id) = task.task_id.clone().filter(|id| !id.trim().is_empty()) else {
        return Ok(refused(StatusCode::BAD_REQUEST, "task_id is required"));
    };
    // A request with the same id waits here until this one has begun its run, or has failed.
    let lock = app.idempotency.lock(&caller, &id);
    let _locked = lock.lock().await;
    match find(&app, &caller, &id).await? {
        // Without a handle it ended with its process.
        Some(found) if found.is_over() || found.handle().is_none() => {
            state::of(&found).await?;
            return Ok(refused(StatusCode::CONFLICT, format!("task_id already finished: {id}")));
        }
        Some(_) => {}
        None => submission::begin(&app, &caller, &id, task).await?,
    }
    let begun = Snapshot { task_id: Some(id), status: Some(Status::Pending), ..Snapshot::default() };
    Ok(Json(begun).into_response())
}

async fn status(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Snapshot>, Problem> {
    let snapshot = match find(&app, &caller, &id).await? {
        Some(found) => state::of(&found).await?,
        None => Snapshot { continues_sessions: Some(true), ..state::unknown() },
    };
    Ok(Json(Snapshot { task_id: Some(id), ..snapshot }))
}

#[derive(Deserialize)]
struct WaitParams {
    timeout_seconds: Option<u64>,
}

/// Waits until the task has ended or waits for an approval.
async fn wait(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(params): Query<WaitParams>,
) -> Result<Json<Snapshot>, Problem> {
    caller.release_permit();
    let Some(found) = find(&app, &caller, &id).await? else { return Ok(Json(state::unknown())) };
    let timeout = params.timeout_seconds.map_or(MAX_WAIT, Duration::from_secs).min(MAX_WAIT);
    let (session, run) = (found.session().clone(), found.id().clone());
    let deadline = Instant::now() + timeout;
    let late = || state::failed(format!("wait timeout after {} ms", timeout.as_millis()));
    // Behind what the state is read from, so that no change is missed between.
    let mut cursor = session.log().committed_from(session.log().last_seq() + 1);
    loop {
        let found = session.find_run(&run).ok_or_else(|| Problem::not_found("run", run.as_str()))?;
        let Ok(snapshot) = timeout_at(deadline, state::of(&found)).await else { return Ok(Json(late())) };
        let snapshot = snapshot?;
        if !matches!(snapshot.status, Some(Status::Pending | Status::Running)) {
            return Ok(Json(snapshot));
        }
        let changed = async {
            let event = async {
                while let Some(event) = cursor.next().await {
                    if may_end_wait(&event.kind) {
                        return;
                    }
                }
            };
            // The run may be over a moment later than its last event is read.
            let released = async {
                match found.handle() {
                    Some(run) => run.released().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = released => {}
                () = event => {}
            }
        };
        tokio::select! {
            biased;
            () = app.stop.cancelled() => {
                return Err(shutting_down());
            }
            changed = timeout_at(deadline, changed) => if changed.is_err() {
                return Ok(Json(late()));
            },
        }
    }
}

fn may_end_wait(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::AgentEnd { .. }
            | EventKind::RunCancelled { .. }
            | EventKind::RequireUserConfirm { .. }
            | EventKind::Gap { .. }
    )
}

/// Cancels a task with all that it has started. One that is not known is cancelled already.
async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    if let Some(run) = find(&app, &caller, &id).await?.as_ref().and_then(FoundRun::handle) {
        run.cancel_with_tasks(CancelReason::user("over the Agent Protocol"));
    }
    Ok(StatusCode::OK)
}

#[derive(Deserialize)]
struct EventParams {
    from_seq: Option<u64>,
}

async fn events(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(params): Query<EventParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Some(found) = find(&app, &caller, &id).await? else {
        return Ok(refused(StatusCode::NOT_FOUND, "task not found"));
    };
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let after = params.from_seq.filter(|seq| *seq > 0).or(last).unwrap_or(0);
    let mut encoder = AgentProtocol::new(id).with_from_seq(after);
    if let Some(event) = first_event(&found).await {
        encoder.learn(&event);
    }
    let log = found.session().log();
    // An event may be several of the protocol, of which the reader has the first.
    let first = after.min(log.last_seq() + 1).max(found.first());
    let subscription = Subscription::to(runs::until(&found));
    match available(log.committed_from(first), &subscription, found.is_over()).await {
        Available::After { oldest } => {
            let detail = format!("events up to {} are no longer stored", oldest - 1);
            Err(Problem::new(Code::Gone, detail))
        }
        Available::Nothing => Ok(([(header::CONTENT_TYPE, "text/event-stream")], "").into_response()),
        Available::Something => {
            let permit = ReaderPermit::acquire(&app, &caller, found.session())?;
            Ok(respond(&app, log.committed_from(first), Box::new(encoder), subscription, permit, None))
        }
    }
}

/// Answers the requests for approval about the named calls. Others wait on.
async fn resume(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body, _): Body<Resume>,
) -> Result<Response, Problem> {
    let found = find(&app, &caller, &id).await?;
    let mut is_answered = false;
    if let Some(found) = &found {
        for (confirm, calls) in state::pending(found) {
            if let Some(decision) = decided(&calls, &body.decisions) {
                is_answered |= answer(found, &confirm, decision).await;
            }
        }
    }
    if !is_answered {
        let error = format!("task is not awaiting confirmation: {id}");
        return Ok(refused(StatusCode::CONFLICT, error));
    }
    let resumed = Snapshot { task_id: Some(id), status: Some(Status::Running), ..Snapshot::default() };
    Ok(Json(resumed).into_response())
}

/// Returns once the state of the task shows the answer; `false` if the request was answered
/// meanwhile.
async fn answer(found: &FoundRun, confirm: &ConfirmId, decision: Decision) -> bool {
    let session = found.session();
    let mut cursor = session.log().committed_from(session.log().last_seq() + 1);
    if session.confirm(confirm, decision).is_err() {
        return false;
    }
    let shown = async {
        while session.fleet().confirmations.contains_key(confirm) && cursor.next().await.is_some() {}
    };
    let _ = timeout(ANSWER_WAIT, shown).await;
    true
}

/// Returns the decision about a request: to allow it if each of its calls is approved; `None` if no
/// call of it is named.
fn decided(calls: &[ToolCall], verdicts: &[Verdict]) -> Option<Decision> {
    let verdict =
        |call: &ToolCall| verdicts.iter().rfind(|one| one.tool_call_id.as_deref() == Some(call.id.as_str()));
    let verdicts: Vec<_> = calls.iter().map(verdict).collect();
    verdicts.iter().any(Option::is_some).then_some(())?;
    if verdicts.iter().all(|one| one.is_some_and(|one| one.approved)) {
        return Some(Decision::Allow);
    }
    let reason = verdicts.into_iter().flatten().find_map(|one| one.reason.clone());
    Some(Decision::Deny(reason.unwrap_or_else(|| DENIED.to_owned())))
}
