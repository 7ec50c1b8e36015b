//! Links of sessions in the file.

use mainstem_event::Timestamp;
use mainstem_message::{LinkId, SessionId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::table::{invalid, session_id};
use crate::Link;

const FIELDS: &str = "links.id, name, links.created_at, expires_at, through";

fn micros(at: Timestamp) -> i64 {
    at.as_micros() as i64
}

fn time(row: &Row<'_>, index: usize) -> rusqlite::Result<Timestamp> {
    Ok(Timestamp::from_micros(row.get::<_, i64>(index)?.max(0).cast_unsigned()))
}

fn read(row: &Row<'_>) -> rusqlite::Result<Link> {
    let id = row.get::<_, String>(0)?.parse().map_err(|error| invalid(0, error))?;
    let through = row.get::<_, Option<i64>>(4)?.map(|seq| seq.max(0).cast_unsigned());
    Ok(Link {
        id,
        session: session_id(row, 1)?,
        created_at: time(row, 2)?,
        expires_at: time(row, 3)?,
        through,
    })
}

/// Stores a link; returns `false` if its session does not exist.
pub(super) fn add(connection: &Connection, link: &Link) -> rusqlite::Result<bool> {
    let Link { id, session, created_at, expires_at, through } = link;
    connection.execute("DELETE FROM links WHERE expires_at <= ?1", [micros(*created_at)])?;
    let sql = "INSERT INTO links (id, session, created_at, expires_at, through)
        SELECT ?2, id, ?3, ?4, ?5 FROM sessions WHERE name = ?1 AND last > 0";
    let through = through.map(u64::cast_signed);
    let values = params![session.as_str(), id.as_str(), micros(*created_at), micros(*expires_at), through];
    Ok(connection.execute(sql, values)? == 1)
}

pub(super) fn find(connection: &Connection, id: &LinkId) -> rusqlite::Result<Option<Link>> {
    let sql =
        format!("SELECT {FIELDS} FROM links JOIN sessions ON sessions.id = session WHERE links.id = ?1");
    connection.prepare_cached(&sql)?.query_row([id.as_str()], read).optional()
}

/// Returns the links of a session, the oldest first.
pub(super) fn of(connection: &Connection, session: &SessionId) -> rusqlite::Result<Vec<Link>> {
    let sql = format!(
        "SELECT {FIELDS} FROM links JOIN sessions ON sessions.id = session WHERE name = ?1
        ORDER BY links.created_at, links.id"
    );
    connection.prepare_cached(&sql)?.query_map([session.as_str()], read)?.collect()
}

pub(super) fn remove(connection: &Connection, id: &LinkId) -> rusqlite::Result<bool> {
    Ok(connection.execute("DELETE FROM links WHERE id = ?1", [id.as_str()])? == 1)
}
