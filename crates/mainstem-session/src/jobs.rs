//! Jobs of the API, in the store of a journal.

use std::{sync::Arc, time::Duration};

use mainstem_api::{Code, JobQuery, JobRunView, JobState, JobView, NewJob, NewRun, Page, Problem, RunState};
use mainstem_event::{Clock, Ids, RandomIds, SystemClock, Timestamp};
use mainstem_journal::{Job, JobChange, JobListing, JobRun, JobStatus, JobStore, Journal, Part};
use mainstem_message::JobId;
use serde_json::json;

use crate::{
    listing::{cut, place},
    refusal::no_session,
};

/// The longest time until a job begins.
const FARTHEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Why there are no jobs.
pub fn no_jobs() -> Problem {
    let detail = "jobs are stored in a journal, and this place has none: `--journal` sets it";
    Problem::new(Code::NoJobs, detail)
}

/// Returns the store of jobs of a journal, if it has one.
///
/// # Errors
/// [`Code::NoJobs`].
pub fn store(journal: Option<&dyn Journal>) -> Result<Arc<dyn JobStore>, Problem> {
    journal.and_then(|journal| journal.jobs()).ok_or_else(no_jobs)
}

/// Adds a job.
///
/// # Errors
/// The job is not valid, there is one of its id, or the store can't be written.
pub async fn add(jobs: &dyn JobStore, new: NewJob) -> Result<JobView, Problem> {
    let job = job_of(new, SystemClock.now())?;
    if !jobs.add(job.clone()).await.map_err(|error| no_session(&error))? {
        return Err(Problem::new(Code::Exists, format!("there is a job {:?} already", job.id.as_str())));
    }
    view(&job)
}

/// Returns a page of jobs; the one that is due first comes first.
///
/// # Errors
/// The query is not valid, or they can't be read.
pub async fn list(jobs: &dyn JobStore, part: Part, query: &JobQuery) -> Result<Page<JobView>, Problem> {
    let live = [JobStatus::Waiting, JobStatus::Active];
    let size = query.size()?;
    let mut listing = JobListing::new(part, if query.all { &[][..] } else { &live }, size + 1);
    listing.after = place(query.cursor.as_deref())?;
    let mut found = jobs.list(&listing).await.map_err(|error| no_session(&error))?;
    let next = cut(&mut found, size, Job::place);
    Ok(Page { items: found.iter().map(view).collect::<Result<_, _>>()?, next })
}

/// Returns a job.
///
/// # Errors
/// It does not exist, or can't be read.
pub async fn find(jobs: &dyn JobStore, id: &JobId) -> Result<JobView, Problem> {
    let found = jobs.job(id).await.map_err(|error| no_session(&error))?;
    view(&found.ok_or_else(|| Problem::not_found("job", id.as_str()))?)
}

/// Cancels a job: it begins no further run, and the process that runs it is asked to end its run.
///
/// # Errors
/// It does not exist, is over, or can't be changed.
pub async fn cancel(jobs: &dyn JobStore, id: &JobId) -> Result<JobView, Problem> {
    let changed = jobs.change(id, JobChange::Cancel).await.map_err(|error| no_session(&error))?;
    match changed.ok_or_else(|| Problem::not_found("job", id.as_str()))? {
        Ok(job) => view(&job),
        Err(fault) => Err(Problem::new(Code::JobOver, fault.to_string())),
    }
}

fn job_of(new: NewJob, now: Timestamp) -> Result<Job, Problem> {
    let NewJob { id, session_id, run, run_at, cron, priority } = new;
    if !run.is_valid() {
        return Err(wrong("/run/input", NewRun::ONE_OF));
    }
    // With a slash, they would name another tenant's.
    if id.as_ref().is_some_and(|id| id.tenant().is_some()) {
        return Err(wrong("/id", "an id has no slash"));
    }
    if session_id.as_ref().is_some_and(|session| session.tenant().is_some()) {
        return Err(wrong("/session_id", "an id has no slash"));
    }
    if run_at.is_some_and(|at| at > now.after(FARTHEST)) {
        return Err(wrong("/run_at", "this is more than a hundred years from now"));
    }
    if run_at.is_some() && cron.is_some() {
        return Err(wrong("/cron", "a job has either `run_at` or `cron`"));
    }
    let id = id.unwrap_or_else(|| JobId::from_lossy(RandomIds.next("job-")));
    let mut job =
        Job::new(id, json!(run), run_at.unwrap_or(now)).with_created_at(now).with_priority(priority);
    if let Some(cron) = cron {
        job = job.with_cron(&cron, now).map_err(|error| wrong("/cron", &error.to_string()))?;
    }
    Ok(session_id.into_iter().fold(job, Job::with_session))
}

fn wrong(pointer: &str, why: &str) -> Problem {
    let errors = json!([{ "pointer": pointer, "detail": why }]);
    let detail = format!("the body does not fit, at {pointer:?}: {why}");
    Problem::new(Code::BadBody, detail).with_member("errors", errors)
}

fn view(job: &Job) -> Result<JobView, Problem> {
    let run = serde_json::from_value(job.run.clone()).map_err(|error| {
        let detail = format!("job {:?} is of another version of this program: {error}", job.id.as_str());
        Problem::new(Code::JournalUnavailable, detail)
    })?;
    Ok(JobView {
        id: job.id.clone(),
        session_id: job.session_id.clone(),
        run,
        cron: job.cron.clone(),
        priority: job.priority,
        status: state(job),
        due_at: job.due_at,
        runs: job.runs,
        run_id: job.run_id.clone(),
        last_run: job.last_run.as_ref().map(run_view),
        postponed: job.postponed.clone().filter(|_| !job.status.is_over()),
        created_at: job.created_at,
        updated_at: job.updated_at,
    })
}

fn state(job: &Job) -> JobState {
    match job.status {
        JobStatus::Waiting | JobStatus::Active if job.is_cancelling => JobState::Cancelling,
        JobStatus::Waiting => JobState::Waiting,
        JobStatus::Active => JobState::Active,
        JobStatus::Cancelled => JobState::Cancelled,
        _ => JobState::Ended,
    }
}

fn run_view(run: &JobRun) -> JobRunView {
    let JobRun { session_id, run_id, outcome, error, ended_at } = run.clone();
    JobRunView { session_id, run_id, status: RunState::from(outcome), error, ended_at }
}
