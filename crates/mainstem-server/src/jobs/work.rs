//! Runs jobs that are due. Each is a request to this server's own routes, with a key: so a job that
//! is run twice, because its process has ended, has one run; and a session that another node has
//! open runs it there.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::pending,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Method, Request, StatusCode, header},
    response::Response,
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use mainstem::{
    event::{Clock, OnLost, Outcome, SystemClock},
    journal::{JOB_LEASE, Job, JobChange, JobRun, JobStatus, JobStore, Take},
    message::{Failure, JobId, RunId, SessionId},
    policy::Tenant,
};
use mainstem_api::{Code, Endpoint, Page, Problem, RunState, RunView};
use serde::{Deserialize as _, de::DeserializeOwned};
use serde_json::json;
use tokio::{
    select,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use crate::{
    app::App,
    outage::Outage,
    take_over::{is_cut, is_given_up, takes_up},
};

/// How often jobs that are due, and cancels, are looked for.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long a job waits that this server could not begin.
const POSTPONED: Duration = Duration::from_secs(5);

/// How long a request waits for the end of a run.
const WAIT: u64 = 30;

/// How long the run of a job is waited for by its key; the server forgets a key after a day.
const KEYED: Duration = Duration::from_secs(12 * 3600);

/// How long another node has to take up the turn of a run whose node has ended.
const TAKEN_UP: Duration = Duration::from_secs(60);

/// In the extensions of a request that a job sends: its tenant.
#[derive(Clone)]
pub(crate) struct OfJob(pub(crate) Tenant);

/// Runs jobs; never returns. Dropped, its jobs are left to another process.
pub(crate) async fn work(app: &Arc<App>, router: Router) -> Infallible {
    let jobs = app.harness.journal().and_then(|journal| journal.jobs());
    let Some(jobs) = jobs.filter(|_| app.limits.jobs > 0) else { return pending().await };
    let mut active = FuturesUnordered::new();
    let mut held = BTreeMap::<JobId, CancellationToken>::new();
    let mut renewed = Instant::now();
    let mut outage = Outage::of("read or write jobs");
    loop {
        let take = Take {
            most: app.limits.jobs.saturating_sub(active.len()),
            per_tenant: app.limits.jobs_per_tenant,
            held: held.keys().cloned().collect(),
        };
        // A server that drains waits for the ends of those that it has.
        let taken = match app.draining.is_cancelled() {
            true => None,
            false => outage.told(jobs.take(take).await),
        };
        for job in taken.into_iter().flatten() {
            let cancel = CancellationToken::new();
            held.insert(job.id.clone(), cancel.clone());
            active.push(Work { app, router: &router, jobs: &*jobs }.run(job, cancel));
        }
        app.active_jobs.store(active.len(), Ordering::Relaxed);
        select! {
            Some(done) = active.next() => { held.remove(&done); }
            () = app.jobs_added.notified() => {}
            () = sleep(INTERVAL) => {}
        }
        if !held.is_empty() {
            let active = outage.told(jobs.jobs(&[JobStatus::Active]).await).unwrap_or_default();
            let cancelled = active.iter().filter(|job| job.is_cancelling);
            cancelled.filter_map(|job| held.get(&job.id)).for_each(CancellationToken::cancel);
            if renewed.elapsed() > JOB_LEASE / 3 {
                renewed = Instant::now();
                outage.told(jobs.renew().await);
            }
        }
    }
}

/// What a job needs.
struct Work<'a> {
    app: &'a Arc<App>,
    router: &'a Router,
    jobs: &'a dyn JobStore,
}

/// What became of a request.
enum Answer<T> {
    Ok(T),
    /// It may succeed later.
    Later(Problem),
    Refused(Problem),
}

impl Work<'_> {
    /// Runs a job to the end of its run, and records that. Returns its id.
    async fn run(self, job: Job, cancel: CancellationToken) -> JobId {
        let id = job.id.clone();
        let tenant = id.tenant().and_then(|name| name.parse().ok());
        let change = if self.app.serves(&tenant) {
            self.attempt(&job, &tenant, &cancel).await
        } else {
            let why = "the server that took it has no token of its tenant";
            tracing::warn!(job = %id, why, "a job is postponed");
            postpone(&job, why.to_owned())
        };
        // What can't be recorded now is recorded later, unless another process has the job by then.
        while let Err(error) = self.jobs.change(&id, change.clone()).await {
            tracing::warn!(job = %id, %error, "the end of a job can't be recorded; trying again");
            sleep(INTERVAL).await;
        }
        id
    }

    /// Begins the run, or finds it if an earlier attempt has begun it, and waits for its end.
    async fn attempt(&self, job: &Job, tenant: &Tenant, cancel: &CancellationToken) -> JobChange {
        let own = job.clone().without_tenant();
        let session = own.next_session();
        let asked = match &own.run_id {
            Some(run) => self.get(Endpoint::GetRun, run.as_str(), tenant).await,
            None => self.begin(&own, &session, tenant, None).await,
        };
        let begun = match asked {
            Answer::Ok(run) => run,
            Answer::Later(problem) => {
                tracing::info!(job = %job.id, why = problem.detail, "a job is postponed");
                return postpone(job, problem.detail);
            }
            Answer::Refused(problem) => {
                tracing::warn!(job = %job.id, why = problem.detail, "a job can't begin");
                let failure = Failure::new(problem.code.as_str(), problem.detail);
                return finish(job, own.run_id.clone(), Outcome::Error, Some(failure));
            }
        };
        tracing::info!(job = %job.id, session = %session, run = %begun.id, "a job has begun");
        self.record(job, &begun).await;
        // A run of an earlier attempt may have a key that is forgotten.
        let keyed_until = Instant::now() + if own.run_id.is_none() { KEYED } else { Duration::ZERO };
        let run = AwaitedRun { work: self, job: &own, session: &session, tenant, keyed_until };
        let run = run.ended(begun, cancel).await;
        let outcome = run.status.outcome().unwrap_or(Outcome::Cancelled);
        tracing::info!(job = %job.id, run = %run.id, outcome = outcome.as_str(), "a job has ended");
        finish(job, Some(run.id), outcome, run.error)
    }

    /// Records which run has begun, so that another process finds it after its key is forgotten.
    async fn record(&self, job: &Job, begun: &RunView) {
        if job.run_id.is_some() {
            return;
        }
        let change = JobChange::Begin { attempt: job.attempt, run: begun.id.clone() };
        if let Err(error) = self.jobs.change(&job.id, change).await {
            tracing::warn!(job = %job.id, %error, "the run of a job can't be recorded; its key finds it for a day");
        }
    }

    async fn begin(
        &self,
        job: &Job,
        session: &SessionId,
        tenant: &Tenant,
        wait: Option<u64>,
    ) -> Answer<RunView> {
        let mut run = job.run.clone();
        if let Some(run) = run.as_object_mut().filter(|run| !run.contains_key("resume")) {
            run.insert("queue".into(), json!(true));
        }
        let mut request = request(Endpoint::BeginRun, &[session.as_str()], tenant)
            .header("idempotency-key", job.key())
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(wait) = wait {
            request = request.header("prefer", format!("wait={wait}"));
        }
        self.ask(request.body(Body::from(run.to_string()))).await
    }

    async fn get<T: DeserializeOwned>(&self, endpoint: Endpoint, id: &str, tenant: &Tenant) -> Answer<T> {
        self.ask(request(endpoint, &[id], tenant).body(Body::empty())).await
    }

    async fn ask<T: DeserializeOwned>(&self, request: axum::http::Result<Request<Body>>) -> Answer<T> {
        let request = match request {
            Ok(request) => request,
            Err(error) => return Answer::Refused(Problem::new(Code::BadBody, error.to_string())),
        };
        let service = TowerToHyperService::new(self.router.clone());
        let response = service.call(request).await.unwrap_or_else(|never: Infallible| match never {});
        read(response).await
    }
}

/// A run that has begun for a job, and those that take its turn up when its node has ended.
struct AwaitedRun<'a> {
    work: &'a Work<'a>,
    job: &'a Job,
    session: &'a SessionId,
    tenant: &'a Tenant,
    /// Until when the run is found, and awaited, by the job's key.
    keyed_until: Instant,
}

impl AwaitedRun<'_> {
    /// Waits for the end. Once the job is cancelled, so is the run.
    async fn ended(&self, begun: RunView, cancel: &CancellationToken) -> RunView {
        let first = begun.id.clone();
        let (mut last, mut stopped) = (begun, None);
        loop {
            if last.status.is_over() {
                match self.resumed(&last).await {
                    Some(next) => last = next,
                    None => return last,
                }
                continue;
            }
            let is_cancelled = cancel.is_cancelled();
            if is_cancelled && stopped.as_ref() != Some(&last.id) {
                self.stop(&last.id).await;
                stopped = Some(last.id.clone());
            }
            let asked = select! {
                asked = self.ask(&last.id, last.id == first) => asked,
                () = cancel.cancelled(), if !is_cancelled => continue,
            };
            match asked {
                Answer::Ok(run) => last = run,
                Answer::Later(_) => sleep(INTERVAL).await,
                Answer::Refused(problem) => return lost(last, &problem),
            }
        }
    }

    /// Asks for the run; waits for its end, or for a moment.
    async fn ask(&self, run: &RunId, is_first: bool) -> Answer<RunView> {
        if is_first && Instant::now() < self.keyed_until {
            // The same key finds the same run, and waits.
            return self.work.begin(self.job, self.session, self.tenant, Some(WAIT)).await;
        }
        sleep(INTERVAL).await;
        self.work.get(Endpoint::GetRun, run.as_str(), self.tenant).await
    }

    /// Returns the run that takes up the turn of this one, if it was cut off. A node that takes the
    /// session over needs time, and room.
    async fn resumed(&self, cut: &RunView) -> Option<RunView> {
        let until = Instant::now() + TAKEN_UP;
        while is_cut(cut.error.as_ref()) {
            let listed =
                self.work.get::<Page<RunView>>(Endpoint::ListRuns, self.session.as_str(), self.tenant);
            let runs = match listed.await {
                Answer::Ok(runs) => runs.items,
                Answer::Later(_) => Vec::new(),
                Answer::Refused(_) => return None,
            };
            // One that was cancelled in the queue has used nothing.
            let has_begun = |run: &&RunView| match run.status {
                RunState::Queued => false,
                RunState::Cancelled => run.usage.is_some(),
                _ => true,
            };
            let mut begun = runs.iter().filter(has_begun);
            let is_given_up = is_given_up(begun.clone().map(|run| run.error.as_ref()));
            let is_superseded = begun.next_back().is_some_and(|last| last.id != cut.id);
            if let Some(next) = runs.into_iter().find(|run| run.resumes.as_ref() == Some(&cut.id)) {
                return Some(next);
            }
            if is_given_up || is_superseded || !self.is_taken_up() || Instant::now() >= until {
                return None;
            }
            sleep(INTERVAL).await;
        }
        None
    }

    /// Returns `true` if a node takes the run's turn up once its own has ended.
    fn is_taken_up(&self) -> bool {
        let on_lost = &self.job.run["options"]["on_lost"];
        takes_up(self.work.app, OnLost::deserialize(on_lost).ok())
    }

    async fn stop(&self, run: &RunId) {
        let asked = request(Endpoint::CancelRun, &[run.as_str()], self.tenant).body(Body::empty());
        if let Answer::Later(problem) | Answer::Refused(problem) = self.work.ask::<RunView>(asked).await {
            tracing::warn!(%run, why = problem.detail, "the run of a cancelled job can't be cancelled");
        }
    }
}

fn request(endpoint: Endpoint, path: &[&str], tenant: &Tenant) -> axum::http::request::Builder {
    let method = match endpoint.operation().method() {
        mainstem_api::Method::Post => Method::POST,
        _ => Method::GET,
    };
    let builder =
        Request::builder().method(method).uri(endpoint.path(path)).header(header::HOST, "localhost");
    builder.extension(OfJob(tenant.clone()))
}

async fn read<T: DeserializeOwned>(response: Response) -> Answer<T> {
    let status = response.status();
    let unreadable = |why: String| Answer::Later(Problem::new(Code::JournalUnavailable, why));
    let body = match to_bytes(response.into_body(), usize::MAX).await {
        Ok(body) => body,
        Err(error) => return unreadable(error.to_string()),
    };
    if status.is_success() {
        return serde_json::from_slice(&body).map_or_else(|error| unreadable(error.to_string()), Answer::Ok);
    }
    let problem = serde_json::from_slice::<Problem>(&body)
        .unwrap_or_else(|_| Problem::new(Code::JournalUnavailable, status.to_string()));
    let is_busy = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
    match is_busy || matches!(problem.code, Code::SessionBusy | Code::RunActive) {
        true => Answer::Later(problem),
        false => Answer::Refused(problem),
    }
}

/// The run's session was deleted while it was awaited.
fn lost(mut run: RunView, problem: &Problem) -> RunView {
    run.status = RunState::Error;
    run.error = Some(Failure::new(problem.code.as_str(), problem.detail.clone()));
    run
}

fn postpone(job: &Job, why: String) -> JobChange {
    JobChange::Postpone { attempt: job.attempt, until: SystemClock.now().after(POSTPONED), why }
}

fn finish(job: &Job, run_id: Option<RunId>, outcome: Outcome, error: Option<Failure>) -> JobChange {
    let run = JobRun { session_id: job.next_session(), run_id, outcome, error, ended_at: SystemClock.now() };
    JobChange::Finish { attempt: job.attempt, run }
}
