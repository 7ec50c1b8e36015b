//! Jobs in the file.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use mainstem_event::{Clock, Ids, RandomIds, SystemClock, Timestamp};
use mainstem_message::JobId;
use rusqlite::{Connection, OptionalExtension, Params, Row, ToSql, params, params_from_iter};

use super::{table::invalid, threads::Threads};
use crate::{
    Candidate, JOB_KEPT, JOB_LEASE, Job, JobChange, JobFault, JobStatus, JobStore, JournalError, Take, choose,
};

/// The jobs in a file, as one process has them.
pub(super) struct SqliteJobs {
    threads: Arc<Threads>,
    /// This process, among those that have the file open.
    holder: Arc<str>,
}

impl SqliteJobs {
    pub(super) fn new(threads: Arc<Threads>) -> Self {
        Self { threads, holder: RandomIds.next("").into() }
    }

    async fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.threads.write("write a job to", write).await
    }
}

impl fmt::Debug for SqliteJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteJobs").field("threads", &self.threads).finish_non_exhaustive()
    }
}

#[async_trait]
impl JobStore for SqliteJobs {
    async fn add(&self, job: Job) -> Result<bool, JournalError> {
        self.write(move |connection| add(connection, &job, SystemClock.now())).await
    }

    async fn job(&self, id: &JobId) -> Result<Option<Job>, JournalError> {
        let id = id.clone();
        self.threads.read("read a job of", move |connection| find(connection, &id)).await
    }

    async fn jobs(&self, statuses: &[JobStatus]) -> Result<Vec<Job>, JournalError> {
        let words: Vec<_> = of(statuses).iter().map(|status| status.as_str()).collect();
        let sql = format!(
            "SELECT record FROM jobs WHERE status IN ({}) ORDER BY due_at, id",
            vec!["?"; words.len()].join(", ")
        );
        let list = move |connection: &Connection| records(connection, &sql, params_from_iter(words));
        self.threads.read("list the jobs of", list).await
    }

    async fn change(
        &self,
        id: &JobId,
        change: JobChange,
    ) -> Result<Option<Result<Job, JobFault>>, JournalError> {
        let id = id.clone();
        let apply = move |connection: &Connection| {
            let Some(mut job) = find(connection, &id)? else { return Ok(None) };
            if let Err(fault) = job.apply(change, SystemClock.now()) {
                return Ok(Some(Err(fault)));
            }
            update(connection, &job)?;
            Ok(Some(Ok(job)))
        };
        self.write(apply).await
    }

    async fn take(&self, wanted: Take) -> Result<Vec<Job>, JournalError> {
        let holder = self.holder.clone();
        self.write(move |connection| take(connection, &holder, &wanted, SystemClock.now())).await
    }

    async fn renew(&self) -> Result<(), JournalError> {
        let (holder, until) = (self.holder.clone(), SystemClock.now().after(JOB_LEASE));
        let sql = "UPDATE jobs SET until = ?2 WHERE holder = ?1 AND status = 'active'";
        let renew = move |connection: &Connection| connection.execute(sql, params![holder, micros(until)]);
        self.write(renew).await.map(drop)
    }
}

/// Returns the statuses that are asked for.
fn of(statuses: &[JobStatus]) -> &[JobStatus] {
    if statuses.is_empty() { &JobStatus::ALL } else { statuses }
}

fn micros(at: Timestamp) -> i64 {
    at.as_micros() as i64
}

fn record(row: &Row<'_>) -> rusqlite::Result<Job> {
    serde_json::from_str(&row.get::<_, String>(0)?).map_err(|error| invalid(0, error))
}

fn text(job: &Job) -> rusqlite::Result<String> {
    serde_json::to_string(job).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn records(connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<Vec<Job>> {
    connection.prepare_cached(sql)?.query_map(values, record)?.collect()
}

/// Returns those that can be read: one that is damaged must not hold the others up.
fn intact(connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<Vec<Job>> {
    let mut found = connection.prepare_cached(sql)?;
    let texts = found.query_map(values, |row| row.get::<_, String>(0))?;
    let jobs = texts.map(|text| Ok(serde_json::from_str(&text?).ok()));
    jobs.filter_map(Result::transpose).collect()
}

fn add(connection: &Connection, job: &Job, now: Timestamp) -> rusqlite::Result<bool> {
    let kept = u64::try_from(JOB_KEPT.as_micros()).unwrap_or(u64::MAX);
    let oldest = micros(Timestamp::from_micros(now.as_micros().saturating_sub(kept)));
    let sql = "DELETE FROM jobs WHERE status IN ('ended', 'cancelled') AND updated_at < ?1";
    connection.execute(sql, [oldest])?;
    let sql =
        "INSERT OR IGNORE INTO jobs (id, status, due_at, updated_at, record) VALUES (?1, ?2, ?3, ?4, ?5)";
    let (due_at, updated_at) = (micros(job.due_at), micros(job.updated_at));
    let values = params![job.id.as_str(), job.status.as_str(), due_at, updated_at, text(job)?];
    Ok(connection.execute(sql, values)? == 1)
}

fn find(connection: &Connection, id: &JobId) -> rusqlite::Result<Option<Job>> {
    connection.query_row("SELECT record FROM jobs WHERE id = ?1", [id.as_str()], record).optional()
}

fn update(connection: &Connection, job: &Job) -> rusqlite::Result<()> {
    let sql = "UPDATE jobs SET status = ?2, due_at = ?3, updated_at = ?4, record = ?5 WHERE id = ?1";
    let (due_at, updated_at) = (micros(job.due_at), micros(job.updated_at));
    let values: [&dyn ToSql; 5] = [&job.id.as_str(), &job.status.as_str(), &due_at, &updated_at, &text(job)?];
    connection.execute(sql, values).map(drop)
}

fn take(connection: &Connection, holder: &str, wanted: &Take, now: Timestamp) -> rusqlite::Result<Vec<Job>> {
    let lost = "SELECT record FROM jobs WHERE status = 'active' AND (until < ?1 OR holder = ?2)";
    let lost = intact(connection, lost, params![micros(now), holder])?;
    for mut job in lost.into_iter().filter(|job| !wanted.held.contains(&job.id)) {
        if job.apply(JobChange::Lose, now).is_ok() {
            update(connection, &job)?;
        }
    }
    let due = "SELECT record FROM jobs WHERE status = 'waiting' AND due_at <= ?1";
    let due = intact(connection, due, [micros(now)])?;
    let active = intact(connection, "SELECT record FROM jobs WHERE status = 'active'", [])?;
    let candidates = |jobs: &[Job]| jobs.iter().map(Candidate::from).collect::<Vec<_>>();
    let chosen = choose(&candidates(&due), &candidates(&active), wanted);
    let mut taken = Vec::new();
    for mut job in due.into_iter().filter(|job| chosen.contains(&job.id)) {
        if job.apply(JobChange::Take, now).is_ok() {
            update(connection, &job)?;
            let until = micros(now.after(JOB_LEASE));
            let sql = "UPDATE jobs SET holder = ?2, until = ?3 WHERE id = ?1";
            connection.execute(sql, params![job.id.as_str(), holder, until])?;
            taken.push(job);
        }
    }
    Ok(taken)
}
