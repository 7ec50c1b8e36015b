//! The statements on jobs.

use deadpool_postgres::{Object as Client, Transaction};
use mainstem_event::Timestamp;
use mainstem_journal::{Candidate, JOB_KEPT, Job, JobChange, JobFault, JobListing, JobStatus, Take, choose};
use mainstem_message::{JobId, SessionId};
use tokio_postgres::{Row, types::ToSql};

use super::{query, query_opt, session_id, signed, tenant_of, time};
use crate::error::{Failure, Result};

/// Held by the node that takes jobs, so that limits of all nodes are kept.
const LOCK: i64 = 0x4d53_544a_4f42;

fn record(row: &Row) -> Result<Job> {
    let text: &str = row.try_get(0)?;
    serde_json::from_str(text)
        .map_err(|error| Failure::permanent(format!("the record of a job is damaged: {error}")))
}

fn text(job: &Job) -> Result<String> {
    serde_json::to_string(job).map_err(|error| Failure::permanent(error.to_string()))
}

fn session(job: &Job) -> Option<&str> {
    job.session_id.as_ref().map(SessionId::as_str)
}

/// Adds a job; returns `false` if there is one of this id.
pub(crate) async fn add(client: &Client, job: &Job) -> Result<bool> {
    let sql = "DELETE FROM jobs WHERE status IN ('ended', 'cancelled')
        AND changed_at < clock_timestamp() - $1::float8 * interval '1 second'";
    query(client, sql, &[&JOB_KEPT.as_secs_f64()]).await?;
    let sql = "INSERT INTO jobs (id, tenant, session, priority, due_at, status, record)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING id";
    let (tenant, due_at) = (job.id.tenant().unwrap_or_default(), signed(job.due_at.as_micros()));
    let values: [&(dyn ToSql + Sync); 7] =
        [&job.id.as_str(), &tenant, &session(job), &job.priority, &due_at, &job.status.as_str(), &text(job)?];
    Ok(query_opt(client, sql, &values).await?.is_some())
}

pub(crate) async fn get(client: &Client, id: &JobId) -> Result<Option<Job>> {
    let found = query_opt(client, "SELECT record FROM jobs WHERE id = $1", &[&id.as_str()]).await?;
    found.as_ref().map(record).transpose()
}

pub(crate) async fn list(client: &Client, statuses: &[JobStatus]) -> Result<Vec<Job>> {
    let statuses = if statuses.is_empty() { &JobStatus::ALL } else { statuses };
    let words: Vec<_> = statuses.iter().map(|status| status.as_str()).collect();
    let sql = "SELECT record FROM jobs WHERE status = ANY($1) ORDER BY due_at, id";
    query(client, sql, &[&words]).await?.iter().map(record).collect()
}

/// Returns a page of jobs.
pub(crate) async fn page(client: &Client, listing: &JobListing) -> Result<Vec<Job>> {
    let statuses = if listing.statuses.is_empty() { &JobStatus::ALL } else { &*listing.statuses };
    let words: Vec<_> = statuses.iter().map(|status| status.as_str()).collect();
    let tenant = tenant_of(&listing.part);
    let of_part = if tenant.is_some() { "tenant = $1" } else { "$1::text IS NULL" };
    let sql = format!(
        "SELECT record FROM jobs WHERE {of_part} AND status = ANY($2) AND (due_at, id) > ($3, $4)
        ORDER BY due_at, id LIMIT $5"
    );
    let (at, id) = match &listing.after {
        Some(after) => (signed(after.at.as_micros()), &*after.name),
        None => (-1, ""),
    };
    let values: [&(dyn ToSql + Sync); 5] = [&tenant, &words, &at, &id, &signed(listing.max as u64)];
    query(client, &sql, &values).await?.iter().map(record).collect()
}

/// Returns how many jobs of a tenant are not over; those without a tenant have an empty name.
pub(crate) async fn count(client: &Client, tenant: &str) -> Result<usize> {
    let sql = "SELECT count(*) FROM jobs WHERE tenant = $1 AND status IN ('waiting', 'active')";
    let rows = query(client, sql, &[&tenant]).await?;
    let count = rows.first().map_or(Ok(0), |row| row.try_get::<_, i64>(0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Changes a job, whose row is locked meanwhile.
pub(crate) async fn change(
    client: &mut Client,
    id: &JobId,
    change: JobChange,
) -> Result<Option<Result<Job, JobFault>>> {
    let transaction = client.transaction().await?;
    let sql = transaction.prepare_cached("SELECT record FROM jobs WHERE id = $1 FOR UPDATE").await?;
    let Some(row) = transaction.query_opt(&sql, &[&id.as_str()]).await? else { return Ok(None) };
    let mut job = record(&row)?;
    let now = clock(&transaction).await?;
    if let Err(fault) = job.apply(change, now) {
        return Ok(Some(Err(fault)));
    }
    update(&transaction, &job, None).await?;
    transaction.commit().await?;
    Ok(Some(Ok(job)))
}

/// Returns the database's time.
async fn clock(transaction: &Transaction<'_>) -> Result<Timestamp> {
    let sql = transaction.prepare_cached("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8");
    time(&transaction.query_one(&sql.await?, &[]).await?, 0)
}

async fn update(transaction: &Transaction<'_>, job: &Job, node: Option<i64>) -> Result<()> {
    let sql = "UPDATE jobs SET due_at = $2, status = $3, record = $4, node = coalesce($5, node),
        changed_at = clock_timestamp() WHERE id = $1";
    let due_at = signed(job.due_at.as_micros());
    let values: [&(dyn ToSql + Sync); 5] =
        [&job.id.as_str(), &due_at, &job.status.as_str(), &text(job)?, &node];
    transaction.execute(&transaction.prepare_cached(sql).await?, &values).await?;
    Ok(())
}

/// The jobs that are active although their node has ended, or does not have them.
macro_rules! lost {
    () => {
        " FROM jobs j WHERE status = 'active' AND ((node = $1 AND id <> ALL ($2)) OR NOT EXISTS
            (SELECT FROM nodes n WHERE n.no = j.node AND n.lease_until > clock_timestamp()))"
    };
}

/// Takes jobs for a node, as [`choose`] says.
pub(crate) async fn take(client: &mut Client, node: i64, wanted: &Take) -> Result<Vec<Job>> {
    // Most often there is nothing to do, which needs no lock.
    let sql = concat!(
        "SELECT FROM jobs WHERE status = 'waiting'
            AND due_at <= extract(epoch FROM clock_timestamp()) * 1000000
        UNION ALL SELECT",
        lost!(),
        " LIMIT 1"
    );
    let held: Vec<_> = wanted.held.iter().map(JobId::as_str).collect();
    if query_opt(client, sql, &[&node, &held]).await?.is_none() {
        return Ok(Vec::new());
    }
    let change = client.transaction().await?;
    change.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let now = clock(&change).await?;
    for mut job in intact(&change, concat!("SELECT record", lost!()), &[&node, &held]).await? {
        if job.apply(JobChange::Lose, now).is_ok() {
            update(&change, &job, None).await?;
        }
    }
    let due = due(&change, now, wanted.most).await?;
    let active = "SELECT id, session, priority, due_at FROM jobs WHERE status = 'active'";
    let active = candidates(&change.query(active, &[]).await?)?;
    let chosen = choose(&due, &active, wanted);
    let chosen: Vec<_> = chosen.iter().map(JobId::as_str).collect();
    let mut taken = Vec::new();
    for mut job in intact(&change, "SELECT record FROM jobs WHERE id = ANY($1)", &[&chosen]).await? {
        if job.apply(JobChange::Take, now).is_ok() {
            update(&change, &job, Some(node)).await?;
            taken.push(job);
        }
    }
    change.commit().await?;
    Ok(taken)
}

/// Returns the first jobs of each tenant that are due, of each session the first.
async fn due(change: &Transaction<'_>, now: Timestamp, most: usize) -> Result<Vec<Candidate>> {
    let sql = "WITH RECURSIVE tenants AS (
            (SELECT tenant FROM jobs WHERE status = 'waiting' ORDER BY tenant LIMIT 1)
            UNION ALL
            SELECT (SELECT tenant FROM jobs WHERE status = 'waiting' AND tenant > t.tenant
                ORDER BY tenant LIMIT 1)
            FROM tenants t WHERE t.tenant IS NOT NULL)
        SELECT j.id, j.session, j.priority, j.due_at FROM tenants t, LATERAL (
            SELECT * FROM jobs j WHERE j.tenant = t.tenant AND j.status = 'waiting' AND j.due_at <= $1
                AND NOT EXISTS (SELECT FROM jobs o WHERE o.session = j.session AND (o.status = 'active'
                    OR (o.status = 'waiting' AND o.due_at <= $1
                        AND (-o.priority, o.due_at, o.id) < (-j.priority, j.due_at, j.id))))
            ORDER BY j.priority DESC, j.due_at, j.id LIMIT $2) j";
    let values: [&(dyn ToSql + Sync); 2] = [&signed(now.as_micros()), &signed(most as u64)];
    candidates(&change.query(&change.prepare_cached(sql).await?, &values).await?)
}

fn candidates(rows: &[Row]) -> Result<Vec<Candidate>> {
    let id = |text: &str| JobId::parse_scoped(text).map_err(|error| Failure::permanent(error.to_string()));
    let candidate = |row: &Row| {
        let session: Option<&str> = row.try_get(1)?;
        Ok(Candidate {
            id: id(row.try_get(0)?)?,
            session: session.map(session_id).transpose()?,
            priority: row.try_get(2)?,
            due_at: time(row, 3)?,
        })
    };
    rows.iter().map(candidate).collect()
}

/// Returns those that can be read: one that is damaged must not hold the others up.
async fn intact(change: &Transaction<'_>, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Job>> {
    let rows = change.query(&change.prepare_cached(sql).await?, values).await?;
    let read = |row: &Row| record(row).inspect_err(|error| tracing::warn!(%error, "a job can't be run")).ok();
    Ok(rows.iter().filter_map(read).collect())
}
