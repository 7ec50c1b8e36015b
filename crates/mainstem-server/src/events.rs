//! `GET /sessions/{id}/events`, `/tasks/{id}/events`: recorded events, then live ones.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::{
    encode::{Encoder, Fleet},
    event::{AgentEvent, EventKind, SessionLog},
    journal::JournalError,
    message::{RunId, SessionId},
    prelude::Session,
    session::{FoundRun, SessionCopy},
};
use mainstem_api::{Code, Detail, EventQuery, Format, RunView, StreamForm};
use tokio::time::timeout;

use crate::{
    app::App,
    body::{Path, Query},
    caller::{Caller, Reader},
    feed::{Available, Subscription, Until, available, encoder, respond},
    prefix::Prefix,
    problem::Problem,
    protocols::Protocol,
    readers::{ReaderPermit, Source},
    runs::{self, FREE_WAIT},
    tasks,
};

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    reader: Reader,
    Path(id): Path<String>,
    Query(params): Query<EventQuery>,
    prefix: Prefix,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = reader.of(&id)?;
    let (source, scope) = source_and_scope(&app, &caller, &id, params.run.as_ref()).await?;
    serve(&app, &caller, source, Parts { params, prefix, headers }, scope).await
}

/// Returns where the events of a session come from.
pub(crate) async fn source(app: &Arc<App>, caller: &Caller, id: &str) -> Result<Source, Problem> {
    Ok(source_and_scope(app, caller, id, None).await?.0)
}

/// Returns where the events of a session come from, and the part of them that is read.
async fn source_and_scope(
    app: &Arc<App>,
    caller: &Caller,
    id: &str,
    run: Option<&RunId>,
) -> Result<(Source, Scope), Problem> {
    if caller.link.is_some() {
        return shared(app, caller, &id.parse()?, run).await;
    }
    match app.session(caller, id).await {
        Ok(session) => Ok((Source::from(&session), scope_of(app, caller, &session, run).await?)),
        // A node that drains opens no sessions.
        Err(busy) if matches!(busy.body().code, Code::SessionBusy | Code::ShuttingDown) => {
            elsewhere(app, caller, &id.parse()?, run, busy).await
        }
        Err(problem) => Err(problem),
    }
}

/// Returns a copy of a session for a reader with a link, and the part that is read. The session is
/// neither opened nor kept open for it, so it can be taken over and deleted.
async fn shared(
    app: &App,
    caller: &Caller,
    id: &SessionId,
    run: Option<&RunId>,
) -> Result<(Source, Scope), Problem> {
    let unreadable = |error: JournalError| app.unreadable(&error);
    let copy = caller.harness.sessions().copy(id).await.map_err(unreadable)?;
    let copy = copy.ok_or_else(|| Problem::not_found("session", id.as_str()))?;
    let scope = match run {
        Some(run) => {
            let found = copy.run(run).await.map_err(unreadable)?;
            let (first, is_over) = found.ok_or_else(|| Problem::not_found("run", run.as_str()))?;
            Scope { first, is_over, until: Until::EndOf(run.clone(), None) }
        }
        // Nothing follows until a caller opens it.
        None => Scope { is_over: copy.is_abandoned().await, ..Scope::WHOLE },
    };
    Ok((Source::Elsewhere(copy), scope))
}

async fn scope_of(
    app: &Arc<App>,
    caller: &Caller,
    session: &Session,
    run: Option<&RunId>,
) -> Result<Scope, Problem> {
    let Some(id) = run else { return Ok(Scope::WHOLE) };
    let run = run_of(app, caller, session, id).await?;
    Ok(Scope { first: run.first(), is_over: run.is_over(), until: runs::until(&run) })
}

/// Returns a copy of a session that another process writes, and the part that is read.
///
/// # Errors
/// `busy` if the journal does not have the session or the run: then the request goes to the process
/// that has the session open. If no other process shares the journal, a missing run is `not_found`.
/// The journal can't be read.
async fn elsewhere(
    app: &App,
    caller: &Caller,
    id: &SessionId,
    run: Option<&RunId>,
    busy: Problem,
) -> Result<(Source, Scope), Problem> {
    let unreadable = |error: JournalError| app.unreadable(&error);
    let copy = caller.harness.sessions().copy(id).await.map_err(unreadable)?;
    let (Some(copy), Some(run)) = (copy.clone(), run) else {
        return copy.map(|copy| (Source::Elsewhere(copy), Scope::WHOLE)).ok_or(busy);
    };
    match copy.run(run).await.map_err(unreadable)? {
        Some((first, is_over)) => {
            let scope = Scope { first, is_over, until: Until::EndOf(run.clone(), None) };
            Ok((Source::Elsewhere(copy), scope))
        }
        None if caller.harness.journal().is_some_and(|journal| journal.node().is_some()) => Err(busy),
        None => Err(Problem::not_found("run", run.as_str())),
    }
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
    serve(&app, &caller, (&session).into(), Parts { params, prefix, headers }, scope).await
}

/// `GET /sessions/{id}/events/{seq}`: one event, however large it is.
pub(crate) async fn one(
    State(app): State<Arc<App>>,
    reader: Reader,
    Path((id, seq)): Path<(String, String)>,
) -> Result<Json<AgentEvent>, Problem> {
    let caller = reader.of(&id)?;
    let source = source(&app, &caller, &id).await?;
    let log = source.log();
    let last = last_shown(&caller, log.last_seq());
    let wanted = seq.parse().ok().filter(|wanted| (1..=last).contains(wanted));
    let wanted = wanted.ok_or_else(|| Problem::not_found("event", &seq))?;
    let found = log.committed_from(wanted).at_hand().await;
    let found = found.filter(|event| event.seq == wanted && !matches!(event.kind, EventKind::Gap { .. }));
    found.map(|event| Json(event.without_spec())).ok_or_else(|| gone(wanted + 1))
}

/// Streams a run that another process has begun, to its end; `None` if it can't be read.
pub(crate) async fn of_run_elsewhere(
    app: &Arc<App>,
    copy: &SessionCopy,
    run: &RunView,
    encoder: Box<dyn Encoder>,
    permit: ReaderPermit,
) -> Option<Response> {
    let (first, _) = copy.run(&run.id).await.ok()??;
    let subscription = Subscription::to(Until::EndOf(run.id.clone(), None));
    Some(respond(app, copy.log().committed_from(first), encoder, subscription, permit, None))
}

/// Returns the last of a session's events that a caller may read.
fn last_shown(caller: &Caller, last: u64) -> u64 {
    caller.through().map_or(last, |through| through.min(last))
}

/// The requested part of a session.
struct Scope {
    /// The number of its first event, or of an earlier one.
    first: u64,
    /// Whether it gets no more events.
    is_over: bool,
    until: Until,
}

impl Scope {
    /// All events of a session.
    const WHOLE: Self = Self { first: 1, is_over: false, until: Until::Never };
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
    source: Source,
    Parts { params, prefix, headers }: Parts,
    scope: Scope,
) -> Result<Response, Problem> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let encoder: Box<dyn Encoder> = match params.format {
        Some(Format::Fleet) => {
            app.served.require(Protocol::Fleet)?;
            Box::new(Fleet::new())
        }
        None => encoder(StreamForm::accepted(accept).unwrap_or(StreamForm::Sse), prefix),
    };
    let is_shared = caller.link.is_some();
    let subscription = Subscription {
        filter: params.filter()?,
        lifecycle: params.detail == Detail::Lifecycle,
        until: scope.until,
        through: caller.through(),
        follow: params.is_following() && caller.through().is_none() && !(is_shared && scope.is_over),
    };
    let after = last_event_id(&headers)?.or(params.after).unwrap_or(0);
    Reading { source, first: scope.first, is_over: scope.is_over, after, subscription }
        .respond(app, caller, encoder)
        .await
}

/// A part of a session, from after an event on.
pub(crate) struct Reading {
    pub(crate) source: Source,
    /// The number of the part's first event, or of an earlier one.
    pub(crate) first: u64,
    /// Whether it gets no more events.
    pub(crate) is_over: bool,
    /// The last event that the reader has.
    pub(crate) after: u64,
    pub(crate) subscription: Subscription,
}

impl Reading {
    /// Returns the events of a run after one of them, to its end.
    pub(crate) fn of_run(run: &FoundRun, after: u64) -> Self {
        let subscription = Subscription::to(runs::until(run));
        Self { source: run.session().into(), first: run.first(), is_over: run.is_over(), after, subscription }
    }

    /// Streams it.
    ///
    /// # Errors
    /// The reader's last event does not exist, its next ones are no longer stored, or there are too
    /// many readers.
    pub(crate) async fn respond(
        self,
        app: &Arc<App>,
        caller: &Caller,
        encoder: Box<dyn Encoder>,
    ) -> Result<Response, Problem> {
        let Self { source, first, is_over, after, subscription } = self;
        let log = source.log().clone();
        let last = last_shown(caller, log.last_seq());
        if after > last {
            let detail = format!("there is no event {after} yet; the latest is {last}");
            return Err(Problem::new(Code::BadCursor, detail));
        }
        if caller.through() == Some(after) || has_last(&log, &subscription, after).await {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        let from = (after + 1).max(first);
        let is_complete = !subscription.follow || is_over;
        match available(log.committed_from(from), &subscription, is_complete).await {
            Available::After { oldest } if caller.through().is_some_and(|through| oldest > through) => {
                let detail = "the events that this link shows are no longer stored";
                return Err(Problem::new(Code::Gone, detail));
            }
            Available::After { oldest } => return Err(gone(oldest)),
            // A browser's EventSource reconnects unless it gets a 204.
            Available::Nothing => return Ok(StatusCode::NO_CONTENT.into_response()),
            Available::Something => {}
        }
        let permit = ReaderPermit::acquire(app, caller, source)?;
        Ok(respond(app, log.committed_from(from), encoder, subscription, permit, None))
    }
}

/// Returns `true` if the last event that the reader has is the end of what it reads. Another node
/// may have shown it before the run knows here that it has ended; waits for that, so that another
/// run can begin.
async fn has_last(log: &Arc<SessionLog>, subscription: &Subscription, after: u64) -> bool {
    let has_end = !matches!(subscription.until, Until::Never);
    let last = if after > 0 && has_end { log.committed_from(after).at_hand().await } else { None };
    let is_end = last.is_some_and(|event| event.seq == after && subscription.until.is_reached_by(&event));
    if is_end {
        let _ = timeout(FREE_WAIT, subscription.until.released()).await;
    }
    is_end
}

fn gone(oldest: u64) -> Problem {
    let before = oldest - 1;
    let detail = format!("events up to {before} are no longer stored; begin with after={before}");
    Problem::new(Code::Gone, detail).with("oldest_seq", oldest)
}

/// Returns a run of this session.
async fn run_of(app: &Arc<App>, caller: &Caller, session: &Session, id: &RunId) -> Result<FoundRun, Problem> {
    let run = app.find_run(caller, id).await?;
    let is_of_session = run.session().id() == session.id();
    if is_of_session { Ok(run) } else { Err(Problem::not_found("run", id.as_str())) }
}

/// Returns the last event that a reconnecting reader has seen.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let wrong = || Problem::new(Code::BadCursor, "Last-Event-ID is not the number of an event");
    number.map(Some).ok_or_else(wrong)
}
