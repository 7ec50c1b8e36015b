//! The statements on queued runs.

use deadpool_postgres::Object as Client;
use mainstem_journal::QueuedRun;
use mainstem_message::{RunId, SessionId};
use tokio_postgres::Row;

use super::{query, query_opt, session_id};
use crate::error::{Failure, Result};

fn read(row: &Row) -> Result<QueuedRun> {
    let id: &str = row.try_get(0)?;
    let id = id.parse().map_err(|error| Failure::permanent(format!("a queued run is damaged: {error}")))?;
    Ok(QueuedRun { id, session: session_id(row.try_get(1)?)?, request: row.try_get(2)? })
}

/// Stores a run behind those that are stored. Does nothing if it is stored.
pub(crate) async fn add(client: &Client, run: &QueuedRun) -> Result<()> {
    let QueuedRun { id, session, request } = run;
    let sql = "INSERT INTO queued_runs (run, session, request) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    query(client, sql, &[&id.as_str(), &session.as_str(), request]).await.map(drop)
}

pub(crate) async fn find(client: &Client, id: &RunId) -> Result<Option<QueuedRun>> {
    let sql = "SELECT run, session, request FROM queued_runs WHERE run = $1";
    query_opt(client, sql, &[&id.as_str()]).await?.as_ref().map(read).transpose()
}

/// Returns the queued runs of a session, in order.
pub(crate) async fn of(client: &Client, session: &SessionId) -> Result<Vec<QueuedRun>> {
    let sql = "SELECT run, session, request FROM queued_runs WHERE session = $1 ORDER BY place";
    query(client, sql, &[&session.as_str()]).await?.iter().map(read).collect()
}

pub(crate) async fn remove(client: &Client, id: &RunId) -> Result<bool> {
    let removed =
        query_opt(client, "DELETE FROM queued_runs WHERE run = $1 RETURNING run", &[&id.as_str()]).await?;
    Ok(removed.is_some())
}
