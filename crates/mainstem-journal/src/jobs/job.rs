//! A job, and its state machine. Pure.

use mainstem_event::{Outcome, Timestamp};
use mainstem_message::{Failure, JobId, RunId, SessionId, TenantName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Cron, CronError, MAX_LOSSES};
use crate::Place;

/// A request for a run at a time, or again and again.
///
/// ```
/// use mainstem_journal::{Job, JobChange, JobStatus};
/// use serde_json::json;
///
/// let now = "2026-11-26T12:00:00Z".parse()?;
/// let id = "job-1".parse()?;
/// let job = Job::new(id, json!({ "input": "Report." }), now);
/// let mut job = job.with_cron("0 9 * * MON-FRI", now)?;
/// assert_eq!(job.due_at.to_string(), "2026-11-27T09:00:00.000000Z");
/// job.apply(JobChange::Cancel, now)?;
/// assert_eq!(job.status, JobStatus::Cancelled);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The session of its runs; by default each has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// What is run: the body of `POST /v1/sessions/{session}/runs`.
    pub run: Value,
    /// Among the jobs of a tenant that are due, those of a higher priority begin first; 0 by
    /// default.
    #[serde(default)]
    pub priority: i16,
    /// When it is due again: five fields and a time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// When its next run begins.
    pub due_at: Timestamp,
    /// Its status.
    pub status: JobStatus,
    /// How many of its runs have ended.
    #[serde(default)]
    pub runs: u64,
    /// Whether a cancel was requested: its run is cancelled, and with the end of that the job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cancelling: bool,
    /// Its run that has begun and has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// How many processes in a row have ended after they had taken it, before its next run began.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub losses: u32,
    /// The last of its runs that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<JobRun>,
    /// How often it was taken. A process with a lower number can't change it.
    #[serde(default)]
    pub attempt: u64,
    /// Why the last attempt to begin its next run had to be put off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postponed: Option<String>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The status of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum JobStatus {
    /// It is not due yet, or no process had room for it.
    Waiting,
    /// A process has taken it.
    Active,
    /// Its only run has ended.
    Ended,
    /// It was cancelled.
    Cancelled,
}

impl JobStatus {
    /// All statuses.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Active, Self::Ended, Self::Cancelled];

    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Active => "active",
            Self::Ended => "ended",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns `true` if nothing follows.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Cancelled)
    }
}

/// A run of a job that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by those who run jobs")]
pub struct JobRun {
    /// Its session.
    pub session_id: SessionId,
    /// The run; `None` if it could not begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed, or could not begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// A change of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobChange {
    /// It begins no further run. A run that has begun is cancelled by the process that has taken
    /// the job; a job that waits with such a run is due at once.
    Cancel,
    /// A process takes it.
    Take,
    /// The process that took it has ended. After [`MAX_LOSSES`] in a row before a run began, the
    /// run counts as failed: a job that ends its process is not tried without end.
    Lose,
    /// Its run has begun.
    Begin {
        /// The attempt.
        attempt: u64,
        /// The run.
        run: RunId,
    },
    /// The process of this attempt gives it back.
    Postpone {
        /// The attempt.
        attempt: u64,
        /// When it is due again.
        until: Timestamp,
        /// Why it could not begin.
        why: String,
    },
    /// Its run has ended.
    Finish {
        /// The attempt.
        attempt: u64,
        /// The run.
        run: JobRun,
    },
}

/// Why a change of a job is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JobFault {
    /// It has ended.
    #[error("the job is over already")]
    Over,
    /// Another process has taken it, or has lost it.
    #[error("another process has taken the job over")]
    Overtaken,
}

impl Job {
    /// Creates a job that is due at a time.
    pub fn new(id: JobId, run: Value, due_at: Timestamp) -> Self {
        let (session_id, cron, run_id, last_run) = Default::default();
        Self {
            id,
            session_id,
            run,
            priority: 0,
            cron,
            due_at,
            status: JobStatus::Waiting,
            runs: 0,
            is_cancelling: false,
            run_id,
            losses: 0,
            last_run,
            postponed: None,
            attempt: 0,
            created_at: due_at,
            updated_at: due_at,
        }
    }

    /// Sets the session of its runs.
    #[must_use]
    pub fn with_session(mut self, session: SessionId) -> Self {
        self.session_id = Some(session);
        self
    }

    /// Sets the priority.
    #[must_use]
    pub fn with_priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    /// Makes it due again and again, for the first time after `now`.
    ///
    /// # Errors
    /// If the text is not a time of [`Cron`], or never comes.
    pub fn with_cron(mut self, text: &str, now: Timestamp) -> Result<Self, CronError> {
        let cron: Cron = text.parse()?;
        self.due_at = cron.next_after(now).ok_or_else(|| CronError::never(text))?;
        self.cron = Some(text.to_owned());
        Ok(self)
    }

    /// Sets when it was added.
    #[must_use]
    pub fn with_created_at(mut self, at: Timestamp) -> Self {
        (self.created_at, self.updated_at) = (at, at);
        self
    }

    /// Returns its place in the list of jobs.
    pub fn place(&self) -> Place {
        Place { at: self.due_at, name: self.id.as_str().to_owned() }
    }

    /// Returns the key of its next run, the same for each process that takes the job: a run that is
    /// begun with it twice is one run.
    pub fn key(&self) -> String {
        format!("job:{}:{}", self.id, self.runs + 1)
    }

    /// Returns the session of its next run.
    pub fn next_session(&self) -> SessionId {
        self.session_id.clone().unwrap_or_else(|| self.own_session())
    }

    fn own_session(&self) -> SessionId {
        let named = |id: &JobId| SessionId::from_lossy(format!("{id}-{}", self.runs + 1));
        let tenant = self.id.tenant().and_then(|name| name.parse::<TenantName>().ok());
        let of_tenant = tenant.and_then(|tenant| Some(named(&self.id.unscoped(&tenant)?).scoped(&tenant)));
        of_tenant.unwrap_or_else(|| named(&self.id))
    }

    /// Returns the job with its ids as its tenant sees them; what runs it is called with those.
    #[must_use]
    pub fn without_tenant(mut self) -> Self {
        let Some(tenant) = self.id.tenant().and_then(|name| name.parse::<TenantName>().ok()) else {
            return self;
        };
        let own = |session: SessionId| session.unscoped(&tenant).unwrap_or(session);
        self.id = self.id.unscoped(&tenant).unwrap_or(self.id);
        self.session_id = self.session_id.map(own);
        self.last_run = self.last_run.map(|run| JobRun { session_id: own(run.session_id), ..run });
        self
    }

    /// Applies a change at a time.
    ///
    /// # Errors
    /// If it is refused; the job stays as it was.
    pub fn apply(&mut self, change: JobChange, now: Timestamp) -> Result<(), JobFault> {
        if self.status.is_over() {
            return Err(JobFault::Over);
        }
        match change {
            JobChange::Cancel => self.cancel(now),
            JobChange::Take if self.status == JobStatus::Waiting => {
                self.status = JobStatus::Active;
                self.attempt += 1;
            }
            JobChange::Take => return Err(JobFault::Overtaken),
            JobChange::Lose => self.lose(now),
            JobChange::Begin { attempt, run } => {
                self.check(attempt)?;
                (self.run_id, self.losses) = (Some(run), 0);
            }
            JobChange::Postpone { attempt, until, why } => {
                self.check(attempt)?;
                let is_over = self.is_cancelling && self.run_id.is_none();
                self.status = if is_over { JobStatus::Cancelled } else { JobStatus::Waiting };
                (self.due_at, self.postponed, self.losses) = (until, Some(why), 0);
            }
            JobChange::Finish { attempt, run } => {
                self.check(attempt)?;
                self.finish(run, now);
            }
        }
        self.updated_at = now;
        Ok(())
    }

    fn check(&self, attempt: u64) -> Result<(), JobFault> {
        let is_held = self.status == JobStatus::Active && self.attempt == attempt;
        is_held.then_some(()).ok_or(JobFault::Overtaken)
    }

    fn cancel(&mut self, now: Timestamp) {
        match (self.status, &self.run_id) {
            (JobStatus::Active, _) => self.is_cancelling = true,
            (_, Some(_)) => (self.is_cancelling, self.due_at) = (true, now),
            (_, None) => self.status = JobStatus::Cancelled,
        }
    }

    fn lose(&mut self, now: Timestamp) {
        self.status = JobStatus::Waiting;
        if self.run_id.is_some() {
            return;
        }
        self.losses += 1;
        if self.losses >= MAX_LOSSES {
            let why = format!("{MAX_LOSSES} processes that took the job ended before its run began");
            let error = Some(Failure::new("job_lost", why));
            let session_id = self.next_session();
            let run = JobRun { session_id, run_id: None, outcome: Outcome::Error, error, ended_at: now };
            self.finish(run, now);
        }
    }

    /// What was missed meanwhile is not made up for: the next run is the next one from now on.
    fn finish(&mut self, run: JobRun, now: Timestamp) {
        self.runs += 1;
        (self.run_id, self.losses) = (None, 0);
        (self.last_run, self.postponed) = (Some(run), None);
        let cron = self.cron.as_ref().and_then(|text| text.parse::<Cron>().ok());
        let next = cron.and_then(|cron| cron.next_after(now));
        self.status = match next {
            _ if self.is_cancelling => JobStatus::Cancelled,
            Some(next) => {
                self.due_at = next;
                JobStatus::Waiting
            }
            None => JobStatus::Ended,
        };
    }
}

#[cfg(test)]
mod tests {
    //! Which change leads where.

    use serde_json::json;

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn run() -> JobRun {
        let session_id = "s".parse().unwrap();
        JobRun { session_id, run_id: None, outcome: Outcome::Success, error: None, ended_at: at(9) }
    }

    fn job(cron: Option<&str>) -> Job {
        let job = Job::new("job-1".parse().unwrap(), json!({}), at(0));
        cron.into_iter().fold(job, |job, cron| job.with_cron(cron, at(0)).unwrap())
    }

    #[test]
    fn changes_lead_from_status_to_status() {
        use JobChange::{Begin, Cancel, Finish, Lose, Postpone, Take};
        #[track_caller]
        fn check(cron: Option<&str>, changes: &[JobChange], expected: Result<JobStatus, JobFault>) {
            let mut job = job(cron);
            let mut last = Ok(());
            for change in changes {
                let before = job.clone();
                last = job.apply(change.clone(), at(100));
                assert!(last.is_ok() || job == before, "a change that is refused changes nothing");
            }
            assert_eq!(last.map(|()| job.status), expected, "{changes:?}");
        }
        let finish = |attempt| Finish { attempt, run: run() };
        let postpone = |attempt| Postpone { attempt, until: at(7), why: "busy".to_owned() };
        let (hourly, once) = (Some("0 * * * *"), None);
        check(once, &[Take], Ok(JobStatus::Active));
        check(once, &[Take, Take], Err(JobFault::Overtaken));
        check(once, &[Take, finish(1)], Ok(JobStatus::Ended));
        check(hourly, &[Take, finish(1)], Ok(JobStatus::Waiting));
        check(once, &[Take, finish(2)], Err(JobFault::Overtaken));
        check(once, &[Take, Lose, Take, finish(1)], Err(JobFault::Overtaken));
        check(once, &[Take, Lose, Take, finish(2)], Ok(JobStatus::Ended));
        check(once, &[Take, Lose, finish(1)], Err(JobFault::Overtaken));
        let lost = vec![[Take, Lose]; MAX_LOSSES as usize].concat();
        check(once, &lost[2..], Ok(JobStatus::Waiting));
        check(once, &lost, Ok(JobStatus::Ended));
        check(hourly, &lost, Ok(JobStatus::Waiting));
        check(hourly, &[&lost[..], &lost[2..]].concat(), Ok(JobStatus::Waiting));
        check(once, &[&[Take, Cancel, Lose], &lost[2..]].concat(), Ok(JobStatus::Cancelled));
        let begin = |attempt| Begin { attempt, run: "run-1".parse().unwrap() };
        check(once, &[&[Take, begin(1), Lose], &lost[..]].concat(), Ok(JobStatus::Waiting));
        check(once, &[Take, begin(2)], Err(JobFault::Overtaken));
        check(once, &[begin(0)], Err(JobFault::Overtaken));
        check(once, &[Take, begin(1), finish(1)], Ok(JobStatus::Ended));
        check(once, &[finish(0)], Err(JobFault::Overtaken));
        check(once, &[Take, postpone(1)], Ok(JobStatus::Waiting));
        check(once, &[Take, Cancel, postpone(1)], Ok(JobStatus::Cancelled));
        check(once, &[Cancel], Ok(JobStatus::Cancelled));
        check(once, &[Cancel, Take], Err(JobFault::Over));
        check(once, &[Take, begin(1), Lose, Cancel], Ok(JobStatus::Waiting));
        check(once, &[Take, begin(1), postpone(1), Cancel, Take], Ok(JobStatus::Active));
        check(once, &[Take, begin(1), Cancel, postpone(1)], Ok(JobStatus::Waiting));
        check(hourly, &[Take, begin(1), Lose, Cancel, Take, finish(2)], Ok(JobStatus::Cancelled));
        check(hourly, &[Take, Cancel], Ok(JobStatus::Active));
        check(hourly, &[Take, Cancel, finish(1)], Ok(JobStatus::Cancelled));
        check(hourly, &[Take, finish(1), Take, finish(2), Cancel], Ok(JobStatus::Cancelled));
        check(once, &[Take, finish(1), Cancel], Err(JobFault::Over));
    }

    #[test]
    fn a_job_that_ends_its_processes_fails_and_is_tried_again_at_its_next_time() {
        let mut job = job(Some("0 * * * *"));
        for _ in 0..MAX_LOSSES {
            job.apply(JobChange::Take, at(3600)).unwrap();
            job.apply(JobChange::Lose, at(3600)).unwrap();
        }
        let run = job.last_run.clone().unwrap();
        assert_eq!((run.outcome, run.error.unwrap().code.as_str()), (Outcome::Error, "job_lost"));
        assert_eq!((job.runs, job.losses, job.due_at), (1, 0, at(7200)));
    }

    #[test]
    fn a_job_that_waits_with_a_run_is_due_at_once_when_it_is_cancelled() {
        let mut job = job(None);
        let begin = JobChange::Begin { attempt: 1, run: "run-1".parse().unwrap() };
        let postpone = JobChange::Postpone { attempt: 1, until: at(500), why: "busy".to_owned() };
        for change in [JobChange::Take, begin, postpone, JobChange::Cancel] {
            job.apply(change, at(100)).unwrap();
        }
        assert_eq!((job.status, job.is_cancelling, job.due_at), (JobStatus::Waiting, true, at(100)));
    }

    #[test]
    fn the_session_of_a_tenant_s_job_is_the_tenant_s() {
        let job = Job::new(JobId::parse_scoped("acme/report").unwrap(), json!({}), at(0));
        assert_eq!(job.next_session().as_str(), "acme/report-1");
        assert_eq!(job.without_tenant().next_session().as_str(), "report-1");
    }

    #[test]
    fn each_run_has_its_key_and_a_repeated_attempt_has_the_same() {
        let mut job = job(Some("0 * * * *"));
        assert_eq!((job.key(), job.next_session().to_string()), ("job:job-1:1".into(), "job-1-1".into()));
        job.apply(JobChange::Take, at(1)).unwrap();
        job.apply(JobChange::Lose, at(1)).unwrap();
        assert_eq!(job.key(), "job:job-1:1");
        job.apply(JobChange::Take, at(1)).unwrap();
        job.apply(JobChange::Finish { attempt: 2, run: run() }, at(7200)).unwrap();
        assert_eq!((job.key(), job.next_session().to_string()), ("job:job-1:2".into(), "job-1-2".into()));
        // It ended at 2:00:00: the next hour is 3:00, and 1:00 is not made up for.
        assert_eq!(job.due_at, at(3 * 3600));
    }
}
