//! `POST /sessions/{id}/runs`, `GET /runs/{id}`, `POST /runs/{id}/cancel`.

mod check;

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, TryStreamExt, stream};
use mainstem::{
    encode::Encoder,
    event::{Clock, SystemClock},
    message::{Failure, RunId},
    policy::Share,
    prelude::{RunActive, RunHandle, RunOptions, RunRequest, Session},
    session::{FoundRun, RunStatus},
    tool::ToolSet,
};
use mainstem_api::{CancelQuery, Input, NewRun, OnDisconnect, Page, RunQuery, RunState, RunView, StreamForm};
use tokio::time::timeout;
use tracing::Span;

pub(crate) use self::check::compile_with;

use crate::{
    app::{App, unrecorded},
    body::{Body, Digest, Path, Query},
    caller::Caller,
    data,
    feed::{CancelOnDrop, Subscription, Until, encoder, respond},
    idempotency::{self, KeyedRequest},
    prefix::Prefix,
    problem::Problem,
    queue,
    readers::ReaderPermit,
};

/// The code of a run that ended because its record failed.
const UNRECORDED: &str = "record";

/// The longest time that a response waits for the end of its run.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);

/// How long a request waits for a run that has ended to leave its session.
pub(crate) const FREE_WAIT: Duration = Duration::from_secs(1);

/// Returns a run as its caller sees it. Waits until the end of one that is over is recorded: if
/// this process ends before, another may resume it.
///
/// # Errors
/// The end can't be recorded.
pub(crate) async fn describe(run: &FoundRun) -> Result<RunView, Problem> {
    let view = run.view();
    if is_left(run) {
        return Ok(RunView { status: RunState::Queued, error: None, ..view });
    }
    if view.status.is_over() && !run.until_end_committed().await {
        return Err(unrecorded());
    }
    Ok(RunView { error: view.error.map(without_paths), ..view })
}

/// Returns `true` if the run waits until its turn comes, here or at the next process.
pub(crate) fn is_queued(run: &FoundRun) -> bool {
    run.view().status == RunState::Queued || is_left(run)
}

/// Returns `true` if it goes on at another process.
fn is_left(run: &FoundRun) -> bool {
    run.handle().is_some_and(RunHandle::is_left)
}

/// Returns the end of a reader of the run.
pub(crate) fn until(run: &FoundRun) -> Until {
    Until::EndOf(run.id().clone(), run.handle().cloned())
}

/// Replaces the cause of a failed record, which names files: those are for the operator only.
fn without_paths(mut failure: Failure) -> Failure {
    if failure.code == UNRECORDED {
        failure.message = "the session could not be recorded; the server's log says why".into();
    }
    failure
}

pub(crate) async fn post(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    prefix: Prefix,
    headers: HeaderMap,
    Body(request, digest): Body<NewRun>,
) -> Result<Response, Problem> {
    let key = idempotency::key(&headers)?.map(|key| (key, &digest));
    let is_tied = request.options.on_disconnect == OnDisconnect::Cancel;
    let form = headers.get(header::ACCEPT).and_then(|value| StreamForm::accepted(value.to_str().ok()?));
    let request = NewRunOf { session: &id, run: request, key, is_read: form.is_some() };
    let BegunRun { run: found, is_new, reader } = request.begin(&app, &caller).await?;
    caller.release_permit();
    let tied = found.handle().filter(|_| is_tied && is_new && reader.is_some());
    let tied = tied.cloned().map(CancelOnDrop::new);
    until_recorded(&found).await;
    let mut response = match form.zip(reader) {
        Some((form, permit)) => respond_with(&app, &found, encoder(form, prefix.clone()), permit, tied),
        None => wait_and_describe(&found, &headers).await?,
    };
    prefix.set_location(&mut response, &format!("/v1/runs/{}", found.id()));
    if !is_new {
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// Checks a run that is to begin later.
///
/// # Errors
/// It could not begin now either, whatever else is active.
pub(crate) async fn check_run(app: &App, caller: &Caller, run: &NewRun) -> Result<(), Problem> {
    check::input(app, run)?;
    check::options(run.options.clone(), app, caller).await?;
    let model = check::model(app, run.model.clone())?;
    check::leader(app, caller, run.agent.clone(), model.as_deref()).await.map(drop)
}

/// A request for a run of a session, in any protocol.
pub(crate) struct NewRunOf<'a> {
    pub(crate) session: &'a str,
    pub(crate) run: NewRun,
    /// A request that is repeated with its key and the same body begins one run.
    pub(crate) key: Option<(String, &'a Digest)>,
    /// Whether the response streams the run.
    pub(crate) is_read: bool,
}

/// A run that a request has begun, or an earlier one with the same key.
pub(crate) struct BegunRun {
    pub(crate) run: FoundRun,
    pub(crate) is_new: bool,
    /// The permit of the reader, if the response streams the run.
    pub(crate) reader: Option<ReaderPermit>,
}

impl NewRunOf<'_> {
    /// Begins the run.
    ///
    /// # Errors
    /// The request is not valid, a limit is exceeded, or another run is active.
    pub(crate) async fn begin(self, app: &Arc<App>, caller: &Caller) -> Result<BegunRun, Problem> {
        self.begin_run(app, caller, ToolSet::new(), None).await
    }

    /// Begins the run as [`begin`](Self::begin) does, with further tools of its leader.
    pub(crate) async fn begin_with_tools(
        self,
        app: &Arc<App>,
        caller: &Caller,
        tools: ToolSet,
    ) -> Result<BegunRun, Problem> {
        self.begin_run(app, caller, tools, None).await
    }

    /// Begins the run, without a key, with an id that no other run of any tenant has.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub(crate) async fn begin_as(
        self,
        app: &Arc<App>,
        caller: &Caller,
        id: RunId,
    ) -> Result<BegunRun, Problem> {
        self.begin_run(app, caller, ToolSet::new(), Some(id)).await
    }

    async fn begin_run(
        self,
        app: &Arc<App>,
        caller: &Caller,
        tools: ToolSet,
        run_id: Option<RunId>,
    ) -> Result<BegunRun, Problem> {
        let Self { session: id, run: request, key, is_read } = self;
        check::input(app, &request)?;
        if let Some(Input(message)) = &request.input {
            data::check(app, caller, &id.parse()?, message).await?;
        }
        // Refused before a session or run begins, and before the schema is compiled.
        if key.is_none() {
            drop(app.admit(&caller.tenant)?);
        }
        // One that ends with its reader, or has tools of its caller, does not outlive them.
        let outlives =
            tools.names().next().is_none() && request.options.on_disconnect != OnDisconnect::Cancel;
        let stored = (request.queue && outlives).then(|| request.clone());
        let mut request = prepare(app, caller, request).await?;
        request.options.tools = tools;
        request.stored = stored.and_then(|request| serde_json::to_string(&request).ok());
        let session = match request.input {
            Some(_) => app.open(caller, id).await?,
            None => app.session(caller, id).await?,
        };
        let reader = is_read.then(|| ReaderPermit::acquire(app, caller, &session)).transpose()?;
        let (run, is_new) = match key {
            Some((key, digest)) => begin_once(app, caller, &session, request, key, digest).await?,
            None => {
                let run = run_id.unwrap_or_else(|| session.new_run_id());
                (begin(app, caller, &session, request, run).await?, true)
            }
        };
        Ok(BegunRun { run, is_new, reader })
    }
}

/// Waits until a run that is not queued is recorded, so that a request at another node finds it.
/// Dropping the wait does not stop the run.
pub(crate) async fn until_recorded(run: &FoundRun) {
    let Some(handle) = run.handle().filter(|handle| !matches!(handle.status(), RunStatus::Queued)) else {
        return;
    };
    tokio::select! {
        biased;
        _ = run.session().log().until_committed(run.first()) => {}
        () = handle.released() => {}
    }
}

/// A run to begin, whose options are checked.
struct Prepared {
    /// `None` to resume the session's last turn, or to compact the conversation.
    input: Option<Input>,
    compact: bool,
    /// Whether it waits for the end of an active run.
    queue: bool,
    options: RunOptions,
    /// What is stored of a run that waits.
    stored: Option<String>,
}

async fn prepare(app: &App, caller: &Caller, request: NewRun) -> Result<Prepared, Problem> {
    let NewRun { agent, model, input, compact, queue, options, .. } = request;
    let mut options = check::options(options, app, caller).await?;
    options.model = check::model(app, model)?;
    options.agent = check::leader(app, caller, agent, options.model.as_deref()).await?;
    Ok(Prepared { input, compact, queue, options, stored: None })
}

/// Returns the requested run, and whether it is new: an earlier request with the same key may have
/// begun it.
async fn begin_once(
    app: &Arc<App>,
    caller: &Caller,
    session: &Session,
    request: Prepared,
    key: String,
    digest: &Digest,
) -> Result<(FoundRun, bool), Problem> {
    // A request with the same key waits here until this one has begun its run, or has failed.
    let lock = app.idempotency.lock(caller, &key);
    let _locked = lock.lock().await;
    let run = session.new_run_id();
    let keyed = KeyedRequest { key, digest, session: session.id().clone(), run };
    let (run, was_known) = app.idempotency.claim(app, caller, keyed).await?;
    if was_known {
        match app.find_run(caller, &run).await {
            Ok(found) => return Ok((found, false)),
            // The process that claimed the key ended before the run began.
            Err(problem) if problem.is_not_found() => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok((begin(app, caller, session, request, run).await?, true))
}

async fn begin(
    app: &Arc<App>,
    caller: &Caller,
    session: &Session,
    request: Prepared,
    run: RunId,
) -> Result<FoundRun, Problem> {
    let mut options = request.options.with_run_id(run).with_span(Span::current());
    options.is_stored = request.stored.is_some() && caller.harness.journal().is_some();
    let share = app.admit(&caller.tenant)?;
    if session.has_failed() {
        return Err(unrecorded());
    }
    if !request.queue {
        until_free(session).await;
    }
    let begun = match request.input {
        Some(input) if request.queue => session.queue(RunRequest::new(input.0).with_options(options)),
        Some(input) => session.run(RunRequest::new(input.0).with_options(options)).map_err(run_active)?,
        None if request.compact && request.queue => session.queue_compaction(options),
        None if request.compact => session.compact(options).map_err(run_active)?,
        None => {
            check::resumed_model(app, session, &options)?;
            session.resume(options).map_err(mainstem_api::Problem::from)?
        }
    };
    let run = app.drive(begun, share);
    if let Some(request) = request.stored.filter(|_| matches!(run.status(), RunStatus::Queued)) {
        queue::store(app, caller, &run, request).await?;
    }
    Ok(FoundRun::Live(run))
}

/// Queues a run again that an earlier process of the session has queued.
pub(crate) async fn queue_again(
    app: &Arc<App>,
    caller: &Caller,
    session: &Session,
    request: NewRun,
    id: RunId,
    share: Share,
) -> Result<RunHandle, Problem> {
    let Prepared { input, options, .. } = prepare(app, caller, request).await?;
    let mut options = options.with_run_id(id).with_span(Span::current());
    options.is_stored = true;
    let run = match input {
        Some(input) => session.queue(RunRequest::new(input.0).with_options(options)),
        None => session.queue_compaction(options),
    };
    Ok(app.drive(run, share))
}

/// Waits until the session is free if its active run has ended: a reader at another node may see
/// that end earlier.
async fn until_free(session: &Session) {
    let Some(run) = session.active() else { return };
    let fleet = session.fleet();
    let has_ended = fleet.agents.iter().any(|agent| agent.source.is_none() && agent.ended_at.is_some());
    if has_ended {
        let _ = timeout(FREE_WAIT, run.released()).await;
    }
}

/// Adds how a run can be queued.
fn run_active(active: RunActive) -> Problem {
    let mut problem = mainstem_api::Problem::from(active);
    problem.detail.push_str(", or queue this run (`\"queue\": true`)");
    problem.into()
}

/// Streams a run to the request that has begun it.
pub(crate) fn follow(
    app: &Arc<App>,
    found: &FoundRun,
    encoder: Box<dyn Encoder>,
    permit: ReaderPermit,
    is_tied: bool,
) -> Response {
    let tied = found.handle().filter(|_| is_tied).cloned().map(CancelOnDrop::new);
    respond_with(app, found, encoder, permit, tied)
}

fn respond_with(
    app: &Arc<App>,
    found: &FoundRun,
    encoder: Box<dyn Encoder>,
    permit: ReaderPermit,
    tied: Option<CancelOnDrop>,
) -> Response {
    let cursor = found.session().log().committed_from(found.first());
    respond(app, cursor, encoder, Subscription::to(until(found)), permit, tied)
}

async fn wait_and_describe(found: &FoundRun, headers: &HeaderMap) -> Result<Response, Problem> {
    let wait = headers.get("prefer").and_then(|value| preferred_wait(value.to_str().ok()?));
    if let (Some(time), Some(run)) = (wait, found.handle()) {
        // Dropping the wait does not stop the run, which the server drives.
        let _ = timeout(time, run.released()).await;
    }
    let view = describe(found).await?;
    let is_over = wait.is_some() && view.status.is_over();
    let status = if is_over { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(view)).into_response())
}

/// Reads `Prefer: wait=30` ([RFC 7240](https://www.rfc-editor.org/rfc/rfc7240)), in seconds.
fn preferred_wait(prefer: &str) -> Option<Duration> {
    let mut preferences = prefer.split(',').flat_map(|part| part.split(';')).map(str::trim);
    let seconds = preferences.find_map(|one| one.strip_prefix("wait="))?.trim_matches('"').parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_WAIT))
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<RunQuery>,
) -> Result<Json<Page<RunView>>, Problem> {
    let found = match app.session(&caller, &id).await {
        Ok(session) => query.page_of(session.find_runs(), FoundRun::id)?,
        Err(refused) => {
            let runs = app.record(&caller, &id, refused)?.runs().await?;
            return Ok(Json(query.page_of(runs, |run| &run.id)?));
        }
    };
    caller.release_permit();
    let items = stream::iter(&found.items).then(describe).try_collect().await?;
    Ok(Json(Page { items, next: found.next }))
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<RunView>, Problem> {
    let found = app.run(&caller, &id).await?;
    caller.release_permit();
    Ok(Json(describe(&found).await?))
}

pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(cancel): Query<CancelQuery>,
) -> Result<(StatusCode, Json<RunView>), Problem> {
    let found = app.run(&caller, &id).await?;
    if let Some(run) = found.handle() {
        let waited = Duration::from_millis(SystemClock.now().millis_since(run.requested_at()));
        run.cancel_because(cancel.reason(waited));
    }
    caller.release_permit();
    Ok((StatusCode::ACCEPTED, Json(describe(&found).await?)))
}
