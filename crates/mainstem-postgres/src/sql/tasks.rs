//! The statements on background tasks.

use std::time::Duration;

use deadpool_postgres::Object as Client;
use mainstem_event::Timestamp;
use mainstem_message::TaskId;
use mainstem_task::{ExecutorId, TaskError, TaskFilter, TaskRecord};
use tokio_postgres::{Row, types::ToSql};

use super::{query, query_opt, signed};
use crate::error::{Failure, Result};

/// Later than any clock: the executor of another node is alive, whatever our clock says.
const ALIVE: Timestamp = Timestamp::from_micros(i64::MAX.cast_unsigned());

/// Reads what the index `tasks_resumable` has; its conditions are those of the index.
const RESUMABLE: &str = r#"SELECT record FROM tasks WHERE record LIKE '%"isResumable":true%'
    AND record NOT LIKE '%"status":"completed"%' AND record NOT LIKE '%"status":"failed"%'
    AND record NOT LIKE '%"status":"cancelled"%' ORDER BY created_at, id"#;

fn record(row: &Row) -> Result<TaskRecord> {
    let text: &str = row.try_get(0)?;
    serde_json::from_str(text)
        .map_err(|error| Failure::permanent(format!("the record of a task is damaged: {error}")))
}

fn text(record: &TaskRecord) -> Result<String> {
    serde_json::to_string(record).map_err(|error| Failure::permanent(error.to_string()))
}

/// Stores a record; returns `false` if there is one of this id.
pub(crate) async fn create(client: &Client, record: &TaskRecord) -> Result<bool> {
    let sql = "INSERT INTO tasks VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING RETURNING id";
    let created_at = signed(record.created_at.as_micros());
    let (root, parent) = (record.root_session_id.as_str(), record.parent_session_id.as_str());
    let values: [&(dyn ToSql + Sync); 5] = [&record.id.as_str(), &root, &parent, &created_at, &text(record)?];
    Ok(query_opt(client, sql, &values).await?.is_some())
}

/// Changes a record, whose row is locked meanwhile.
pub(crate) async fn update(
    client: &mut Client,
    id: &TaskId,
    apply: impl FnOnce(&mut TaskRecord) -> Result<(), TaskError>,
) -> Result<Result<TaskRecord, TaskError>> {
    let change = client.transaction().await?;
    let sql = change.prepare_cached("SELECT record FROM tasks WHERE id = $1 FOR UPDATE").await?;
    let Some(row) = change.query_opt(&sql, &[&id.as_str()]).await? else {
        return Ok(Err(TaskError::Unknown { id: id.clone() }));
    };
    let mut record = record(&row)?;
    if let Err(error) = apply(&mut record) {
        return Ok(Err(error));
    }
    let sql = change.prepare_cached("UPDATE tasks SET record = $2 WHERE id = $1").await?;
    change.execute(&sql, &[&id.as_str(), &text(&record)?]).await?;
    change.commit().await?;
    Ok(Ok(record))
}

pub(crate) async fn get(client: &Client, id: &TaskId) -> Result<Option<TaskRecord>> {
    let found = query_opt(client, "SELECT record FROM tasks WHERE id = $1", &[&id.as_str()]).await?;
    found.as_ref().map(record).transpose()
}

pub(crate) async fn list(client: &Client, filter: &TaskFilter) -> Result<Vec<TaskRecord>> {
    let sql = "SELECT record FROM tasks WHERE ($1::text IS NULL OR root = $1)
        AND ($2::text IS NULL OR parent = $2) ORDER BY created_at, id";
    let (root, parent) = (filter.root.as_ref(), filter.parent.as_ref());
    let (root, parent) = (root.map(|id| id.as_str()), parent.map(|id| id.as_str()));
    let found = match filter.resumable {
        true => query(client, RESUMABLE, &[]).await?,
        false => query(client, sql, &[&root, &parent]).await?,
    };
    let records = found.iter().map(record);
    records.filter(|found| found.as_ref().map_or(true, |record| filter.matches(record))).collect()
}

pub(crate) async fn remove(client: &Client, id: &TaskId) -> Result<Option<TaskRecord>> {
    let sql = "DELETE FROM tasks WHERE id = $1 RETURNING record";
    query_opt(client, sql, &[&id.as_str()]).await?.as_ref().map(record).transpose()
}

pub(crate) async fn renew(
    client: &Client,
    executor: &ExecutorId,
    node: i64,
    until: Timestamp,
    lasts: Duration,
) -> Result<()> {
    let sql =
        "INSERT INTO executors VALUES ($1, $2, $3, clock_timestamp() + $4::float8 * interval '1 second')
        ON CONFLICT (id) DO UPDATE SET node = $2, until = $3, lease_until = excluded.lease_until";
    let (until, lasts) = (signed(until.as_micros()), lasts.as_secs_f64());
    query(client, sql, &[&executor.as_str(), &node, &until, &lasts]).await.map(drop)
}

/// Returns the end of an executor's lease; `None` if it or its node has ended.
pub(crate) async fn lease(client: &Client, executor: &ExecutorId, node: i64) -> Result<Option<Timestamp>> {
    let sql = "SELECT e.node = $2, e.until FROM executors e JOIN nodes n ON n.no = e.node
        WHERE e.id = $1 AND (e.node = $2 OR (n.lease_until > clock_timestamp() AND e.lease_until > clock_timestamp()))";
    let Some(row) = query_opt(client, sql, &[&executor.as_str(), &node]).await? else { return Ok(None) };
    let until = row.try_get::<_, i64>(1)?.max(0).cast_unsigned();
    Ok(Some(if row.try_get(0)? { Timestamp::from_micros(until) } else { ALIVE }))
}

pub(crate) async fn release(client: &Client, executor: &ExecutorId) -> Result<()> {
    query(client, "DELETE FROM executors WHERE id = $1", &[&executor.as_str()]).await.map(drop)
}
