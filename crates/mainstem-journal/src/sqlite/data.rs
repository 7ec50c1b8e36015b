//! Data beside the events of sessions.

use bytes::Bytes;
use mainstem_event::Timestamp;
use mainstem_message::{DataId, SessionId};
use rusqlite::{Connection, OptionalExtension, params};

use super::schema::FORMAT;
use crate::DATA_WAITS;

/// Stores data of a session, so that the file has a format that older programs refuse. Does nothing
/// if it is stored.
pub(super) fn add(
    connection: &Connection,
    session: &SessionId,
    id: &DataId,
    bytes: &[u8],
    now: Timestamp,
) -> rusqlite::Result<()> {
    let begun = "SELECT EXISTS (SELECT 1 FROM sessions WHERE name = ?1 AND last > 0)";
    let has_begun: bool = connection.query_row(begun, [session.as_str()], |row| row.get(0))?;
    let waits_since = (!has_begun).then_some(now.as_micros() as i64);
    if waits_since.is_some() {
        remove_abandoned(connection, now)?;
    }
    let sql = "INSERT OR IGNORE INTO data (session, id, bytes, waits_since) VALUES (?1, ?2, ?3, ?4)";
    connection.execute(sql, params![session.as_str(), id.as_str(), bytes, waits_since])?;
    connection.pragma_update(None, "user_version", FORMAT)
}

/// Removes data that has waited too long for its session to begin.
fn remove_abandoned(connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    let oldest = now.as_micros().saturating_sub(DATA_WAITS.as_micros() as u64) as i64;
    let begun = "UPDATE data SET waits_since = NULL WHERE waits_since < ?1
        AND session IN (SELECT name FROM sessions WHERE last > 0)";
    connection.execute(begun, [oldest])?;
    connection.execute("DELETE FROM data WHERE waits_since < ?1", [oldest]).map(drop)
}

pub(super) fn find(
    connection: &Connection,
    session: &SessionId,
    id: &DataId,
) -> rusqlite::Result<Option<Bytes>> {
    let sql = "SELECT bytes FROM data WHERE session = ?1 AND id = ?2";
    let values = params![session.as_str(), id.as_str()];
    connection
        .prepare_cached(sql)?
        .query_row(values, |row| row.get::<_, Vec<u8>>(0).map(Bytes::from))
        .optional()
}
