//! Data beside the events of sessions.

use std::ops::Range;

use bytes::Bytes;
use mainstem_event::Timestamp;
use mainstem_message::{DataId, SessionId};
use rusqlite::{Connection, OptionalExtension, params};

use super::{schema::FORMAT, table::number};
use crate::{DATA_WAITS, MAX_WAITING_DATA};

/// A request to store data of a session.
pub(super) struct StoreData {
    pub(super) session: SessionId,
    pub(super) id: DataId,
    pub(super) bytes: Bytes,
    pub(super) now: Timestamp,
}

/// A condition: the session of a row of `data` has begun.
const BEGUN: &str = "EXISTS (SELECT 1 FROM sessions WHERE name = data.session AND last > 0)";

/// Stores data of a session, and sets a format of the file that older programs refuse. Data that is
/// stored already, of a session that has not begun, gets a new time. Returns `false` if the tenant
/// has too much data of such sessions.
pub(super) fn add(connection: &Connection, data: &StoreData) -> rusqlite::Result<bool> {
    let StoreData { session, id, bytes, now } = data;
    let begun = "SELECT EXISTS (SELECT 1 FROM sessions WHERE name = ?1 AND last > 0)";
    let has_begun: bool = connection.query_row(begun, [session.as_str()], |row| row.get(0))?;
    if !has_begun {
        remove_abandoned(connection, *now)?;
        if waiting(connection, session)? + bytes.len() as u64 > MAX_WAITING_DATA {
            return Ok(false);
        }
    }
    let waits_since = (!has_begun).then_some(now.as_micros() as i64);
    let sql = "INSERT INTO data (session, id, bytes, waits_since) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT DO UPDATE SET waits_since = excluded.waits_since
            WHERE data.waits_since IS NOT NULL AND excluded.waits_since IS NOT NULL";
    connection.execute(sql, params![session.as_str(), id.as_str(), &**bytes, waits_since])?;
    connection.pragma_update(None, "user_version", FORMAT)?;
    Ok(true)
}

/// Returns the size of the data of sessions that have not begun, of the same tenant, in bytes.
fn waiting(connection: &Connection, session: &SessionId) -> rusqlite::Result<u64> {
    let sql = format!(
        "SELECT coalesce(sum(length(bytes)), 0) FROM data WHERE waits_since IS NOT NULL AND NOT {BEGUN}
            AND iif(instr(session, '/'), substr(session, 1, instr(session, '/') - 1), '') = ?1"
    );
    connection.query_row(&sql, [session.tenant().unwrap_or_default()], |row| number(row, 0))
}

/// Removes old data of sessions that have not begun.
pub(super) fn remove_abandoned(connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    let oldest = now.as_micros().saturating_sub(DATA_WAITS.as_micros() as u64) as i64;
    let sql = format!("DELETE FROM data WHERE waits_since < ?1 AND NOT {BEGUN}");
    connection.execute(&sql, [oldest])?;
    let begun = format!("UPDATE data SET waits_since = NULL WHERE waits_since < ?1 AND {BEGUN}");
    connection.execute(&begun, [oldest]).map(drop)
}

pub(super) fn size(
    connection: &Connection,
    session: &SessionId,
    id: &DataId,
) -> rusqlite::Result<Option<u64>> {
    let sql = "SELECT length(bytes) FROM data WHERE session = ?1 AND id = ?2";
    let values = params![session.as_str(), id.as_str()];
    connection.prepare_cached(sql)?.query_row(values, |row| number(row, 0)).optional()
}

/// Returns a part of data.
pub(super) fn find(
    connection: &Connection,
    session: &SessionId,
    id: &DataId,
    part: &Range<u64>,
) -> rusqlite::Result<Option<Bytes>> {
    let row = "SELECT rowid FROM data WHERE session = ?1 AND id = ?2";
    let values = params![session.as_str(), id.as_str()];
    let row = connection.prepare_cached(row)?.query_row(values, |row| row.get(0)).optional()?;
    let Some(row) = row else { return Ok(None) };
    // SQL's `substr` would load the whole value for each part.
    let blob = connection.blob_open("main", "data", "bytes", row, true)?;
    let end = blob.len().min(usize::try_from(part.end).unwrap_or(usize::MAX));
    let start = end.min(usize::try_from(part.start).unwrap_or(usize::MAX));
    let mut bytes = vec![0; end - start];
    blob.read_at_exact(&mut bytes, start)?;
    Ok(Some(bytes.into()))
}
