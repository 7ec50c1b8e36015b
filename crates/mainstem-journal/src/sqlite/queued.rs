//! Queued runs in the file.

use mainstem_message::{RunId, SessionId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::table::{invalid, session_id};
use crate::QueuedRun;

fn read(row: &Row<'_>) -> rusqlite::Result<QueuedRun> {
    let id = row.get::<_, String>(0)?.parse().map_err(|error| invalid(0, error))?;
    Ok(QueuedRun { id, session: session_id(row, 1)?, request: row.get(2)? })
}

/// Stores a run behind those that are stored. Does nothing if it is stored.
pub(super) fn add(connection: &Connection, run: &QueuedRun) -> rusqlite::Result<()> {
    let QueuedRun { id, session, request } = run;
    let sql = "INSERT OR IGNORE INTO queued_runs (run, session, request) VALUES (?1, ?2, ?3)";
    connection.execute(sql, params![id.as_str(), session.as_str(), request]).map(drop)
}

pub(super) fn find(connection: &Connection, id: &RunId) -> rusqlite::Result<Option<QueuedRun>> {
    let sql = "SELECT run, session, request FROM queued_runs WHERE run = ?1";
    connection.prepare_cached(sql)?.query_row([id.as_str()], read).optional()
}

/// Returns the queued runs of a session, in order.
pub(super) fn of(connection: &Connection, session: &SessionId) -> rusqlite::Result<Vec<QueuedRun>> {
    let sql = "SELECT run, session, request FROM queued_runs WHERE session = ?1 ORDER BY place";
    connection.prepare_cached(sql)?.query_map([session.as_str()], read)?.collect()
}

/// Returns the sessions that have queued runs.
pub(super) fn sessions(connection: &Connection) -> rusqlite::Result<Vec<SessionId>> {
    let sql = "SELECT session FROM queued_runs GROUP BY session ORDER BY min(place)";
    connection.prepare_cached(sql)?.query_map([], |row| session_id(row, 0))?.collect()
}

pub(super) fn remove(connection: &Connection, id: &RunId) -> rusqlite::Result<bool> {
    Ok(connection.execute("DELETE FROM queued_runs WHERE run = ?1", [id.as_str()])? == 1)
}
