//! `/jobs`: runs at a time, or again and again.

mod work;

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use mainstem::{
    journal::{JobStore, Journal as _, Part},
    session::jobs,
};
use mainstem_api::{Code, Input, JobQuery, JobView, NewJob, Page};

pub(crate) use self::work::{OfJob, work};

use crate::{
    app::{App, unrecorded},
    body::{Body, Path, Query},
    caller::Caller,
    data,
    prefix::Prefix,
    problem::Problem,
    runs::check_run,
};

/// How many jobs a tenant has that are not over.
pub(crate) const MAX_JOBS: usize = 10_000;

pub(crate) async fn list(
    caller: Caller,
    Query(query): Query<JobQuery>,
) -> Result<Json<Page<JobView>>, Problem> {
    Ok(Json(jobs::list(&*store(&caller)?, Part::Of(None), &query).await.map_err(problem)?))
}

pub(crate) async fn add(
    State(app): State<Arc<App>>,
    caller: Caller,
    prefix: Prefix,
    Body(new, _): Body<NewJob>,
) -> Result<Response, Problem> {
    let store = store(&caller)?;
    check_run(&app, &caller, &new.run).await.map_err(|problem| problem.below("/run"))?;
    check_data(&app, &caller, &new).await.map_err(|problem| problem.below("/run"))?;
    if store.count(None).await.map_err(|error| app.unreadable(&error))? >= MAX_JOBS {
        let detail = format!("there are {MAX_JOBS} jobs that are not over; cancel some");
        return Err(Problem::new(Code::TooManyJobs, detail));
    }
    let job = jobs::add(&*store, new).await.map_err(problem)?;
    app.jobs_added.notify_one();
    let mut response = (StatusCode::CREATED, Json(&job)).into_response();
    prefix.set_location(&mut response, &format!("/v1/jobs/{}", job.id));
    Ok(response)
}

/// Checks the data to which a job's input refers: its session has to have it when the job is due.
async fn check_data(app: &App, caller: &Caller, new: &NewJob) -> Result<(), Problem> {
    let Some(Input(input)) = new.run.input.as_ref().filter(|input| data::has_references(&input.0)) else {
        return Ok(());
    };
    let refused = || {
        let why = "a job refers to data only if its `session_id` names a session that has begun";
        Problem::misfit("/input/content", why)
    };
    let session = new.session_id.as_ref().ok_or_else(refused)?;
    let journal = caller.harness.journal().ok_or_else(refused)?;
    journal.session(session).await.map_err(|error| app.unreadable(&error))?.ok_or_else(refused)?;
    data::check(app, caller, session, input).await
}

pub(crate) async fn get(caller: Caller, Path(id): Path<String>) -> Result<Json<JobView>, Problem> {
    Ok(Json(jobs::find(&*store(&caller)?, &id.parse()?).await.map_err(problem)?))
}

pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<JobView>), Problem> {
    let job = jobs::cancel(&*store(&caller)?, &id.parse()?).await.map_err(problem)?;
    app.jobs_added.notify_one();
    Ok((StatusCode::ACCEPTED, Json(job)))
}

fn store(caller: &Caller) -> Result<Arc<dyn JobStore>, Problem> {
    let journal = caller.harness.journal();
    Ok(jobs::store(journal.map(|journal| &**journal))?)
}

/// The cause of an unavailable journal names files, which are the operator's to know.
fn problem(problem: mainstem_api::Problem) -> Problem {
    if problem.code == Code::JournalUnavailable {
        tracing::error!(why = problem.detail, "jobs can't be read or written");
        return unrecorded();
    }
    problem.into()
}
