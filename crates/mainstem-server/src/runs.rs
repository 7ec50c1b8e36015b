//! `POST /sessions/{id}/runs`, `GET /runs/{id}`, `POST /runs/{id}/cancel`.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::{
    BuildError,
    declarations::LeaderError,
    event::{Clock, EventFilter, SystemClock},
    message::{Failure, RunId},
    policy::Tenant,
    prelude::{RunActive, RunOptions, RunRequest, Session},
    react::OutputSchema,
    session::FoundRun,
};
use mainstem_api::{self as api, CancelQuery, Code, Input, Items, NewRun, OnDisconnect, RunView, StreamForm};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::{
    app::{App, unrecorded},
    body::{Body, Digest, Path, Query},
    caller::Caller,
    feed::{Tied, Until, Wish, answer},
    once::{self, Asked},
    prefix::Prefix,
    problem::Problem,
    readers::Seat,
};

/// The code of a run that ended because its record failed.
const UNRECORDED: &str = "record";

/// The longest that an answer waits for a reply.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);

/// A run as its caller sees it.
pub(crate) fn describe(run: &FoundRun) -> RunView {
    let view = run.view();
    RunView { error: view.error.map(without_paths), ..view }
}

/// Whose events a reader of the run gets, and until when.
pub(crate) fn until(run: &FoundRun) -> Until {
    Until::EndOf(run.id().clone(), run.handle().cloned())
}

/// Why a record failed names files, which are the operator's to know.
fn without_paths(mut failure: Failure) -> Failure {
    if failure.code == UNRECORDED {
        failure.message = "the session could not be recorded; the server's log says why".into();
    }
    failure
}

/// Checks the options of a request and converts them.
async fn checked(options: api::RunOptions, app: &App, caller: &Caller) -> Result<RunOptions, Problem> {
    let limits = caller.harness.limits();
    within("max_depth", options.max_depth.map(usize::from), 0, limits.max_depth.into())?;
    within("max_children", options.max_children, 1, limits.max_children)?;
    let schema = options.output_schema.clone();
    let options = RunOptions::from(options);
    match schema {
        Some(schema) => Ok(options.with_output(compiled(schema, app, &caller.tenant).await?)),
        None => Ok(options),
    }
}

/// Compiles a caller's schema, off the async threads, one of each tenant at a time: it takes a
/// processor's time.
async fn compiled(schema: Value, app: &App, tenant: &Tenant) -> Result<OutputSchema, Problem> {
    let stopping = || Problem::new(Code::ShuttingDown, "the server is shutting down");
    let turn = app.schema_turns.take(tenant).await;
    let compile = move || {
        // Held until the end, also if the caller leaves.
        let _turn = turn;
        OutputSchema::new(schema)
    };
    let compiled = spawn_blocking(compile).await.map_err(|_| stopping())?;
    compiled.map_err(|error| {
        let detail = error.to_string();
        let errors = json!([{ "pointer": "/options/output_schema", "detail": detail }]);
        match error.limit() {
            Some(limit) => {
                let problem = Problem::new(Code::SchemaLimit, detail);
                problem.with("errors", errors).with("limit", limit.name())
            }
            None => Problem::new(Code::BadBody, detail).with("errors", errors),
        }
    })
}

/// Refuses a value outside the server's limits.
fn within(name: &str, asked: Option<usize>, least: usize, most: usize) -> Result<(), Problem> {
    if asked.is_none_or(|asked| (least..=most).contains(&asked)) {
        return Ok(());
    }
    let detail = format!("`{name}` must be from {least} to {most}, the limit of this server");
    Err(Problem::new(Code::BadBody, &*detail)
        .with("errors", json!([{ "pointer": format!("/options/{name}"), "detail": detail }])))
}

pub(crate) async fn post(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    prefix: Prefix,
    headers: HeaderMap,
    Body(wanted, digest): Body<NewRun>,
) -> Result<Response, Problem> {
    either_input_or_resume(&wanted)?;
    wanted.input.as_ref().map_or(Ok(()), check_input)?;
    check_role(&app, wanted.input.as_ref())?;
    let key = once::key(&headers)?;
    let is_tied = wanted.options.on_disconnect == OnDisconnect::Cancel;
    // Refused before a session or run begins, and before the schema is compiled.
    if key.is_none() {
        drop(app.admit(&caller.tenant)?);
    }
    let options = checked(wanted.options, &app, &caller).await?;
    let agent = wanted.agent;
    let mut wanted = Wanted { input: wanted.input, queue: wanted.queue, options };
    wanted.options.agent = leader(&app, &caller, agent).await?;
    let session = match wanted.input {
        Some(_) => app.open(&caller, &id).await?,
        None => app.session(&caller, &id).await?,
    };
    let form = headers.get(header::ACCEPT).and_then(|value| StreamForm::accepted(value.to_str().ok()?));
    let seat = match form {
        Some(_) => Some(Seat::take(&app, &caller, &session)?),
        None => None,
    };
    let (found, is_new) = match key {
        Some(key) => begin_once(&app, &caller, &session, wanted, key, &digest).await?,
        None => {
            let run = session.new_run_id();
            (begin(&app, &caller, &session, wanted, run)?, true)
        }
    };
    caller.rest();
    let mut response = match (form, seat) {
        (Some(form), Some(seat)) => {
            let reader = Reader { form, seat, prefix: prefix.clone() };
            follow(&app, &found, reader, is_tied && is_new)
        }
        _ => wait_and_describe(&found, &headers).await,
    };
    if let Ok(place) = HeaderValue::from_str(&format!("{}/v1/runs/{}", prefix.0, found.id())) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    if !is_new {
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// Returns the requested leader, which can lead; `None` for the harness's own.
async fn leader(app: &App, caller: &Caller, agent: Option<String>) -> Result<Option<Arc<str>>, Problem> {
    let own = caller.harness.agents().root().id().to_string();
    let Some(agent) = agent.filter(|agent| *agent != own) else { return Ok(None) };
    if !app.agents.contains(&agent) {
        let known: Vec<_> = std::iter::once(&own).chain(&app.agents).map(String::as_str).collect();
        let detail = format!("this server runs {}, not {agent:?}", known.join(", "));
        return Err(Problem::new(Code::UnknownAgent, detail));
    }
    let named = format!("agent {agent:?} can't lead a run at the moment; the server's log says why");
    let prepared = caller.harness.prepare_leader(&agent).await;
    prepared.map(|()| Some(agent.into())).map_err(|error| match error {
        BuildError::Leader(LeaderError::Unknown { .. }) => {
            Problem::new(Code::UnknownAgent, error.to_string())
        }
        BuildError::Leader(LeaderError::OnlySpawned { .. }) => {
            Problem::new(Code::OnlySpawned, error.to_string())
        }
        // The cause may name files, which are the operator's to know.
        _ => {
            tracing::error!(%error, "an agent can't lead a run");
            Problem::new(Code::AgentUnusable, named)
        }
    })
}

fn either_input_or_resume(wanted: &NewRun) -> Result<(), Problem> {
    if wanted.input.is_some() != wanted.resume {
        return Ok(());
    }
    let detail = "either an `input` or `resume: true` is required";
    Err(Problem::new(Code::BadBody, detail)
        .with("errors", json!([{ "pointer": "/input", "detail": detail }])))
}

/// Refuses what a user can't say: a tool's result would speak for a tool.
fn check_input(input: &Input) -> Result<(), Problem> {
    let Some((pointer, detail)) = input.problem() else { return Ok(()) };
    let errors = json!([{ "pointer": pointer, "detail": detail }]);
    let detail = format!("the body does not fit, at {pointer:?}: {detail}");
    Err(Problem::new(Code::BadBody, detail).with("errors", errors))
}

/// Refuses an input whose role is not allowed: other roles speak for the operator or the agent.
fn check_role(app: &App, input: Option<&Input>) -> Result<(), Problem> {
    let Some(Input(message)) = input.filter(|input| !app.roles.contains(&input.0.role)) else {
        return Ok(());
    };
    let allowed: Vec<_> = app.roles.iter().map(|role| json!(role).to_string()).collect();
    let detail = format!("the role of an input is {}, not {}", allowed.join(" or "), json!(message.role));
    Err(Problem::new(Code::BadBody, &*detail)
        .with("errors", json!([{ "pointer": "/input/role", "detail": detail }])))
}

/// A run to begin, whose options are in order.
struct Wanted {
    /// Without one the last turn is taken up.
    input: Option<Input>,
    /// Whether it waits for the end of an active run.
    queue: bool,
    options: RunOptions,
}

/// Returns the requested run, and whether it is new: an earlier request with the same key may have
/// begun it.
async fn begin_once(
    app: &Arc<App>,
    caller: &Caller,
    session: &Session,
    wanted: Wanted,
    key: String,
    digest: &Digest,
) -> Result<(FoundRun, bool), Problem> {
    // A request with the same key waits here until this one has begun its run, or has failed.
    let turn = app.once.turn(caller, &key);
    let _turn = turn.lock().await;
    let run = session.new_run_id();
    let asked = Asked { key, digest, session: session.id().clone(), run };
    let (run, was_known) = app.once.claim(app, caller, asked).await?;
    if was_known {
        match app.find_run(caller, &run).await {
            Ok(found) => return Ok((found, false)),
            // Its process has ended before it could begin it.
            Err(problem) if problem.is_not_found() => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok((begin(app, caller, session, wanted, run)?, true))
}

fn begin(
    app: &Arc<App>,
    caller: &Caller,
    session: &Session,
    wanted: Wanted,
    run: RunId,
) -> Result<FoundRun, Problem> {
    let options = wanted.options.with_run_id(run);
    let share = app.admit(&caller.tenant)?;
    if session.has_failed() {
        return Err(unrecorded());
    }
    let begun = match wanted.input {
        Some(input) if wanted.queue => session.queue(RunRequest::new(input.0).with_options(options)),
        Some(input) => session.run(RunRequest::new(input.0).with_options(options)).map_err(run_active)?,
        None => session.resume(options).map_err(mainstem_api::Problem::from)?,
    };
    Ok(FoundRun::Live(app.drive(begun, share)))
}

/// Names the way to queue a run.
fn run_active(active: RunActive) -> Problem {
    let mut problem = mainstem_api::Problem::from(active);
    problem.detail.push_str(" (`\"queue\": true`)");
    problem.into()
}

/// The reader of a run that its request has begun.
struct Reader {
    form: StreamForm,
    seat: Seat,
    prefix: Prefix,
}

/// Its events, to its end.
fn follow(app: &Arc<App>, found: &FoundRun, reader: Reader, is_tied: bool) -> Response {
    let Reader { form, seat, prefix } = reader;
    let tied = found.handle().filter(|_| is_tied).cloned().map(Tied);
    let until = until(found);
    let wish = Wish { form, filter: EventFilter::new(), lifecycle: false, until, follow: true, prefix };
    let cursor = found.session().log().committed_from(found.first());
    answer(app, cursor, wish, seat, tied)
}

async fn wait_and_describe(found: &FoundRun, headers: &HeaderMap) -> Response {
    let wait = headers.get("prefer").and_then(|value| wait(value.to_str().ok()?));
    if let (Some(time), Some(run)) = (wait, found.handle()) {
        // Dropping the wait does not stop the run: it is driven elsewhere.
        let _ = tokio::time::timeout(time, run.released()).await;
    }
    let status = if wait.is_some() && found.is_over() { StatusCode::OK } else { StatusCode::ACCEPTED };
    (status, Json(describe(found))).into_response()
}

/// `Prefer: wait=30` of RFC 7240, in seconds.
fn wait(prefer: &str) -> Option<Duration> {
    let mut wishes = prefer.split(',').flat_map(|part| part.split(';')).map(str::trim);
    let seconds = wishes.find_map(|wish| wish.strip_prefix("wait="))?.trim_matches('"').parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_WAIT))
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Items<RunView>>, Problem> {
    let session = app.session(&caller, &id).await?;
    Ok(Json(Items { items: session.find_runs().iter().map(describe).collect() }))
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<RunView>, Problem> {
    Ok(Json(describe(&app.run(&caller, &id).await?)))
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
    Ok((StatusCode::ACCEPTED, Json(describe(&found))))
}
