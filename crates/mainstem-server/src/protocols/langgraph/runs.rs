//! `/threads/{id}/runs` and `/runs`: runs, their streams and their ends.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::{
    encode::{Encoder, FrameId, LangGraph, LangGraphOptions, LangGraphOutcome, StreamMode},
    event::CancelReason,
    message::ConfirmId,
    session::{FoundRun, refusal},
};
use mainstem_api::Code;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    following::{Questions, questions, run_view, state_before},
    request::{Active, RunRequest, modes, wrong},
    resume::decisions,
    threads::new_id,
};
use crate::{
    app::App,
    body::{Body, Digest, Path, Query},
    caller::Caller,
    feed::{CancelOnDrop, Subscription, Until, respond},
    idempotency,
    problem::Problem,
    readers::ReaderPermit,
    runs::{BegunRun, MAX_WAIT, NewRunOf, until_recorded},
};

/// Parameters after the `?`.
type Parameters = Query<Vec<(String, String)>>;

pub(super) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread): Path<String>,
    headers: HeaderMap,
    Body(request, digest): Body<RunRequest>,
) -> Result<Response, Problem> {
    let begun = begin(&app, &caller, &thread, &headers, &request, &digest, false).await?;
    until_recorded(&begun.run).await;
    let view = run_view(&begun.run, &request.assistant_id).await?;
    Ok(located(Json(view).into_response(), &begun.run, ""))
}

pub(super) async fn stream(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread): Path<String>,
    headers: HeaderMap,
    Body(request, digest): Body<RunRequest>,
) -> Result<Response, Problem> {
    let (modes, subgraphs) = (request.modes()?, request.stream_subgraphs.unwrap_or(false));
    let begun = begin(&app, &caller, &thread, &headers, &request, &digest, true).await?;
    let view = View { modes, subgraphs, assistant: request.assistant_id.clone() };
    let tail = format!("/stream?{}", view.query());
    let run = begun.run.clone();
    Ok(located(follow(&app, &caller, begun, Some(view), request.is_tied()).await?, &run, &tail))
}

pub(super) async fn wait(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread): Path<String>,
    headers: HeaderMap,
    Body(request, digest): Body<RunRequest>,
) -> Result<Response, Problem> {
    let begun = begin(&app, &caller, &thread, &headers, &request, &digest, true).await?;
    let run = begun.run.clone();
    Ok(located(follow(&app, &caller, begun, None, request.is_tied()).await?, &run, "/join"))
}

pub(super) async fn create_stateless(
    app: State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: Body<RunRequest>,
) -> Result<Response, Problem> {
    let thread = Path(new_id());
    create(app, caller, thread, headers, body).await
}

pub(super) async fn stream_stateless(
    app: State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: Body<RunRequest>,
) -> Result<Response, Problem> {
    let thread = Path(new_id());
    stream(app, caller, thread, headers, body).await
}

pub(super) async fn wait_stateless(
    app: State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: Body<RunRequest>,
) -> Result<Response, Problem> {
    let thread = Path(new_id());
    wait(app, caller, thread, headers, body).await
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread): Path<String>,
    Query(parameters): Parameters,
) -> Result<Json<Vec<Value>>, Problem> {
    let session = app.session(&caller, &thread).await?;
    let number = |name: &str| values(&parameters, name).next().and_then(|value| value.parse().ok());
    let runs = session.find_runs();
    let mut page = Vec::new();
    for run in runs.iter().rev().skip(number("offset").unwrap_or(0)).take(number("limit").unwrap_or(10)) {
        page.push(run_view(run, &leader(&caller)).await?);
    }
    Ok(Json(page))
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((thread, run)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let run = find(&app, &caller, &thread, &run).await?;
    Ok(Json(run_view(&run, &leader(&caller)).await?))
}

pub(super) async fn join_stream(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((thread, run)): Path<(String, String)>,
    Query(parameters): Parameters,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = find(&app, &caller, &thread, &run).await?;
    let view = View::of(&parameters, &leader(&caller))?;
    let tail = format!("/stream?{}", view.query());
    let is_tied = is_set(&parameters, "cancel_on_disconnect");
    let begun = Begun::known(&run, position(&headers)?);
    Ok(located(follow(&app, &caller, begun, Some(view), is_tied).await?, &run, &tail))
}

pub(super) async fn join(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((thread, run)): Path<(String, String)>,
    Query(parameters): Parameters,
) -> Result<Response, Problem> {
    let run = find(&app, &caller, &thread, &run).await?;
    let is_tied = is_set(&parameters, "cancel_on_disconnect");
    let begun = Begun::known(&run, None);
    Ok(located(follow(&app, &caller, begun, None, is_tied).await?, &run, "/join"))
}

pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((thread, run)): Path<(String, String)>,
    Query(parameters): Parameters,
) -> Result<StatusCode, Problem> {
    let run = find(&app, &caller, &thread, &run).await?;
    if values(&parameters, "action").any(|action| action == "rollback") {
        return Err(wrong("action \"rollback\" is not supported; use \"interrupt\""));
    }
    if let Some(handle) = run.handle() {
        handle.cancel_with_tasks(CancelReason::user("over HTTP"));
        if is_set(&parameters, "wait") {
            caller.release_permit();
            // The run ends later if this takes longer.
            let _ = timeout(MAX_WAIT, handle.released()).await;
        }
    }
    Ok(StatusCode::ACCEPTED)
}

/// A run to follow.
struct Begun {
    run: FoundRun,
    is_new: bool,
    reader: Option<ReaderPermit>,
    /// The last frame that the client has seen.
    position: Option<FrameId>,
    /// Whether the stream begins with the run's id.
    announces: bool,
    /// The questions that the request has answered. Their answers may not be in the log yet.
    answered: Vec<ConfirmId>,
}

impl Begun {
    /// Returns a run that was begun before.
    fn known(run: &FoundRun, position: Option<FrameId>) -> Self {
        Self {
            run: run.clone(),
            is_new: true,
            reader: None,
            position,
            announces: false,
            answered: Vec::new(),
        }
    }
}

/// What a stream shows.
struct View {
    modes: BTreeSet<StreamMode>,
    subgraphs: bool,
    assistant: String,
}

impl View {
    /// Reads the parameters of a request for a stream; without modes it has all but `messages`.
    fn of(parameters: &[(String, String)], assistant: &str) -> Result<Self, Problem> {
        let names: Vec<String> =
            values(parameters, "stream_mode").flat_map(listed).filter(|name| !name.is_empty()).collect();
        let modes = match &*names {
            [] => StreamMode::ALL.into_iter().filter(|mode| *mode != StreamMode::Messages).collect(),
            names => modes(names.iter().map(String::as_str))?,
        };
        let subgraphs = values(parameters, "stream_subgraphs").next().is_none_or(|value| value != "false");
        Ok(Self { modes, subgraphs, assistant: assistant.to_owned() })
    }

    fn query(&self) -> String {
        let modes = self.modes.iter().map(|mode| format!("stream_mode={}&", mode.name()));
        format!("{}stream_subgraphs={}", modes.collect::<String>(), self.subgraphs)
    }
}

/// Returns the names in a parameter: one, or a list in JSON.
fn listed(value: &str) -> Vec<String> {
    serde_json::from_str(value).unwrap_or_else(|_| vec![value.to_owned()])
}

fn values<'a>(parameters: &'a [(String, String)], name: &'a str) -> impl Iterator<Item = &'a str> {
    parameters.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn is_set(parameters: &[(String, String)], name: &str) -> bool {
    values(parameters, name).any(|value| matches!(value, "1" | "true" | "yes" | "True"))
}

/// Begins a run, or answers what the active one asks.
async fn begin(
    app: &Arc<App>,
    caller: &Caller,
    thread: &str,
    headers: &HeaderMap,
    request: &RunRequest,
    digest: &Digest,
    is_read: bool,
) -> Result<Begun, Problem> {
    request.check()?;
    if let Some(value) = request.resume() {
        return resume(app, caller, thread, value, is_read).await;
    }
    let run = request.to_run()?;
    let active = match request.active()? {
        Active::Cancels => app.session(caller, thread).await.ok().and_then(|session| session.active()),
        _ => None,
    };
    let key = idempotency::key(headers)?.map(|key| (key, digest));
    let begun = NewRunOf { session: thread, run, key, is_read }.begin(app, caller).await?;
    let BegunRun { run, is_new, reader } = begun;
    // The new run waits for its turn. A request that is refused or repeated cancels nothing.
    if is_new && let Some(active) = active {
        active.cancel_because(CancelReason::user("another run of the thread"));
    }
    Ok(Begun { run, is_new, reader, position: None, announces: true, answered: Vec::new() })
}

/// Answers what a thread's active run asks; what follows is read from there on.
async fn resume(
    app: &Arc<App>,
    caller: &Caller,
    thread: &str,
    value: &Value,
    is_read: bool,
) -> Result<Begun, Problem> {
    let session = app.session(caller, thread).await?;
    let active = session.active().and_then(|run| session.find_run(run.id()));
    let run = active.ok_or_else(|| wrong("no run of this thread waits for an answer"))?;
    let asked = questions(&run).await.open;
    let decisions = decisions(value, &asked)?;
    let reader = is_read.then(|| ReaderPermit::acquire(app, caller, run.session())).transpose()?;
    let first = asked.iter().find(|question| decisions.iter().any(|(id, _)| *id == question.id));
    let position = first.and_then(|question| FrameId::parse(&question.seq.to_string()));
    let answered = decisions.iter().map(|(id, _)| id.clone()).collect();
    for (id, decision) in decisions {
        session.confirm(&id, decision).map_err(|error| Problem::from(refusal::no_answer(&error)))?;
    }
    Ok(Begun { run, is_new: true, reader, position, announces: true, answered })
}

/// Streams a run, or its end, up to its next question.
async fn follow(
    app: &Arc<App>,
    caller: &Caller,
    begun: Begun,
    view: Option<View>,
    is_tied: bool,
) -> Result<Response, Problem> {
    let Begun { run, is_new, reader, position, announces, answered: by_request } = begun;
    let tied = run.handle().filter(|_| is_tied && is_new).cloned().map(CancelOnDrop::new);
    let permit = match reader {
        Some(reader) => reader,
        None => ReaderPermit::acquire(app, caller, run.session())?,
    };
    let history = state_before(run.session(), run.first()).await;
    let Questions { mut open, answered } = questions(&run).await;
    open.retain(|question| !by_request.contains(&question.id));
    let seen = position.map_or(0, FrameId::seq).max(answered);
    let has_stopped = open.first().is_some_and(|question| question.seq <= seen);
    let encoder: Box<dyn Encoder> = match view {
        None => Box::new(LangGraphOutcome::new(history)),
        Some(View { modes, subgraphs, assistant }) => {
            let (id, thread) = (run.id().to_string(), run.session().id().to_string());
            let mut options = LangGraphOptions::new(id, thread, assistant);
            options.modes = modes;
            options.subgraphs = subgraphs;
            options.history = history;
            options.position = position;
            options.announces = announces || position.is_none_or(|seen| seen.seq() == 0);
            Box::new(LangGraph::new(options))
        }
    };
    let until = Until::EndOrQuestion { run: run.id().clone(), handle: run.handle().cloned(), after: seen };
    let subscription = Subscription { follow: !has_stopped, ..Subscription::to(until) };
    let cursor = run.session().log().committed_from(run.first());
    caller.release_permit();
    Ok(respond(app, cursor, encoder, subscription, permit, tied))
}

/// Returns a run of this thread.
async fn find(app: &Arc<App>, caller: &Caller, thread: &str, run: &str) -> Result<FoundRun, Problem> {
    let found = app.run(caller, run).await?;
    let is_of_thread = found.session().id().as_str() == thread;
    if is_of_thread { Ok(found) } else { Err(Problem::not_found("run", run)) }
}

fn leader(caller: &Caller) -> String {
    caller.harness.agents().root().id().to_string()
}

/// Returns the last frame that a reconnecting client has seen.
fn position(headers: &HeaderMap) -> Result<Option<FrameId>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let position = value.to_str().ok().and_then(|text| FrameId::parse(text.trim()));
    let wrong = || Problem::new(Code::BadCursor, "Last-Event-ID is not the id of a frame of this server");
    position.map(Some).ok_or_else(wrong)
}

/// Adds where a run is, and where its stream goes on; both are relative to the address of the API.
fn located(mut response: Response, run: &FoundRun, tail: &str) -> Response {
    let place = format!("/threads/{}/runs/{}", run.session().id(), run.id());
    let headers = [(header::CONTENT_LOCATION, place.clone()), (header::LOCATION, format!("{place}{tail}"))];
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
