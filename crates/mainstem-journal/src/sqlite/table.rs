//! Statements on the tables.

mod ids;

use mainstem_event::{AgentEvent, Position, Timestamp};
use mainstem_message::{RunId, SessionId, TenantName};
use rusqlite::{
    Connection, OptionalExtension, Row as SqlRow, params,
    types::{Value, ValueRef},
};

use self::ids::run;
pub(super) use self::ids::{invalid, session_id};
use super::schema::has;
use crate::{
    Checkpoint, Claim, Listing, Part, Place, RunPlace, SessionSummary,
    backend::{self, Found, Row, begins_run, nearest_id},
};

/// A session's row as its writer knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    pub(super) row: i64,
    pub(super) epoch: i64,
    pub(super) state: backend::Head,
}

pub(super) fn number(row: &SqlRow<'_>, index: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(index)?.max(0) as u64)
}

fn time(row: &SqlRow<'_>, index: usize) -> rusqlite::Result<Timestamp> {
    number(row, index).map(Timestamp::from_micros)
}

/// Returns the session of this name, if there is one.
pub(super) fn head(connection: &Connection, session: &SessionId) -> rusqlite::Result<Option<Head>> {
    let sql = "SELECT id, epoch, last, updated_at, run, streams, runs, created_at, begun_at FROM sessions WHERE name = ?1";
    let head = |row: &SqlRow<'_>| {
        let mut state = backend::Head::default();
        state.position.last = number(row, 2)?;
        state.position.at = time(row, 3)?;
        state.position.run = run(row, 4)?;
        state.position.streams = number(row, 5)?;
        (state.runs, state.created_at, state.begun_at) = (number(row, 6)?, time(row, 7)?, time(row, 8)?);
        Ok(Head { row: row.get(0)?, epoch: row.get(1)?, state })
    };
    connection.prepare_cached(sql)?.query_row([session.as_str()], head).optional()
}

pub(super) fn create(connection: &Connection, session: &SessionId) -> rusqlite::Result<()> {
    connection
        .execute("INSERT INTO sessions (name) VALUES (?1) ON CONFLICT DO NOTHING", [session.as_str()])?;
    Ok(())
}

/// Returns the row of the session of this name, if there is one, and whether it ever had an event.
pub(super) fn row_of(connection: &Connection, session: &SessionId) -> rusqlite::Result<Option<(i64, bool)>> {
    let mut row = connection.prepare_cached("SELECT id, last > 0 FROM sessions WHERE name = ?1")?;
    row.query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

/// Raises a session's epoch and returns it. Only a writer with the current epoch writes the
/// session.
pub(super) fn take_over(connection: &Connection, row: i64) -> rusqlite::Result<i64> {
    connection.query_row(
        "UPDATE sessions SET epoch = epoch + 1 WHERE id = ?1 RETURNING epoch",
        [row],
        |row| row.get(0),
    )
}

/// Returns a session's epoch; `None` if the session was deleted.
pub(super) fn epoch(connection: &Connection, row: i64) -> rusqlite::Result<Option<i64>> {
    let mut epoch = connection.prepare_cached("SELECT epoch FROM sessions WHERE id = ?1")?;
    epoch.query_row([row], |row| row.get(0)).optional()
}

pub(super) fn insert(connection: &Connection, row: i64, event: &AgentEvent) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3)")?;
    insert.execute(params![row, event.seq as i64, event.to_json()])?;
    if let Some(run) = event.origin.run_id.as_ref().filter(|_| begins_run(event)) {
        let mut insert = connection.prepare_cached("INSERT OR IGNORE INTO runs VALUES (?1, ?2, ?3)")?;
        insert.execute(params![run.as_str(), row, event.seq as i64])?;
    }
    Ok(())
}

pub(super) fn update(connection: &Connection, head: &Head) -> rusqlite::Result<()> {
    let sql = "UPDATE sessions SET last = ?2, updated_at = ?3, run = ?4, streams = ?5, runs = ?6, created_at = ?7, begun_at = ?8 WHERE id = ?1";
    let Position { last, at, run, streams, .. } = &head.state.position;
    connection.prepare_cached(sql)?.execute(params![
        head.row,
        *last as i64,
        at.as_micros() as i64,
        run.as_ref().map(RunId::as_str),
        *streams as i64,
        head.state.runs as i64,
        head.state.created_at.as_micros() as i64,
        head.state.begun_at.as_micros() as i64,
    ])?;
    Ok(())
}

/// Returns the place of a run.
pub(super) fn place_of(connection: &Connection, id: &RunId) -> rusqlite::Result<Option<RunPlace>> {
    let sql =
        "SELECT name, runs.first FROM runs JOIN sessions ON sessions.id = runs.session WHERE runs.run = ?1";
    let place = |row: &SqlRow<'_>| Ok(RunPlace { session: session_id(row, 0)?, first: number(row, 1)? });
    connection.prepare_cached(sql)?.query_row([id.as_str()], place).optional()
}

/// Returns how many bytes the events of each session have.
pub(super) fn sizes(connection: &Connection) -> rusqlite::Result<Vec<(SessionId, u64)>> {
    let sql = "SELECT name, sum(octet_length(event))
            + (SELECT coalesce(sum(length(bytes)), 0) FROM data WHERE data.session = name)
        FROM events JOIN sessions ON id = session GROUP BY events.session";
    let size = |row: &SqlRow<'_>| Ok((session_id(row, 0)?, number(row, 1)?));
    // A session whose id can't be read is shown as damaged elsewhere.
    Ok(connection.prepare_cached(sql)?.query_map([], size)?.filter_map(Result::ok).collect())
}

/// Claims a key, or returns the earlier claim of it.
pub(super) fn claim(connection: &Connection, claim: &Claim) -> rusqlite::Result<Option<Claim>> {
    let Claim { key, digest, session, run, at } = claim;
    connection.execute("DELETE FROM claims WHERE at < ?1", [claim.oldest_remembered().as_micros() as i64])?;
    let earlier = |row: &SqlRow<'_>| {
        let (digest, at) = (row.get(0)?, time(row, 3)?);
        let run = row.get::<_, String>(2)?.parse().map_err(|error| invalid(2, error))?;
        Ok(Claim { key: key.clone(), digest, session: session_id(row, 1)?, run, at })
    };
    let sql = "SELECT digest, session, run, at FROM claims WHERE key = ?1";
    let found = connection.query_row(sql, [key], earlier).optional()?;
    if found.is_none() {
        let values = params![key, digest, session.as_str(), run.as_str(), at.as_micros() as i64];
        connection.execute("INSERT INTO claims VALUES (?1, ?2, ?3, ?4, ?5)", values)?;
    }
    Ok(found)
}

pub(super) fn checkpoint(
    connection: &Connection,
    session: &SessionId,
) -> rusqlite::Result<Option<Checkpoint>> {
    let sql = "SELECT checkpoints.seq, state FROM checkpoints JOIN sessions ON sessions.id = session WHERE name = ?1";
    let found = |row: &SqlRow<'_>| Ok(Checkpoint { seq: number(row, 0)?, state: row.get(1)? });
    connection.prepare_cached(sql)?.query_row([session.as_str()], found).optional()
}

pub(super) fn store_checkpoint(
    connection: &Connection,
    session: &SessionId,
    checkpoint: &Checkpoint,
) -> rusqlite::Result<()> {
    let Checkpoint { seq, state } = checkpoint;
    let sql =
        "INSERT OR REPLACE INTO checkpoints SELECT id, ?2, ?3 FROM sessions WHERE name = ?1 AND ?2 <= last";
    connection.execute(sql, params![session.as_str(), *seq as i64, state]).map(drop)
}

pub(super) fn moment(
    connection: &Connection,
    session: &SessionId,
    seq: u64,
) -> rusqlite::Result<Option<Checkpoint>> {
    // A file of an earlier program, which is only read.
    if !has(connection, "moments")? {
        return Ok(None);
    }
    let sql = "SELECT seq, state FROM moments JOIN sessions ON sessions.id = session
        WHERE name = ?1 AND moments.first = sessions.first AND seq <= ?2 ORDER BY seq DESC LIMIT 1";
    let found = |row: &SqlRow<'_>| Ok(Checkpoint { seq: number(row, 0)?, state: row.get(1)? });
    connection
        .prepare_cached(sql)?
        .query_row(params![session.as_str(), i64::try_from(seq).unwrap_or(i64::MAX)], found)
        .optional()
}

pub(super) fn store_moment(
    connection: &Connection,
    session: &SessionId,
    moment: &Checkpoint,
) -> rusqlite::Result<()> {
    let Checkpoint { seq, state } = moment;
    let sql =
        "INSERT OR REPLACE INTO moments (session, seq, first, state) SELECT id, ?2, first, ?3 FROM sessions
        WHERE name = ?1";
    connection.execute(sql, params![session.as_str(), *seq as i64, state]).map(drop)
}

pub(super) fn delete(connection: &Connection, row: i64, session: &SessionId) -> rusqlite::Result<()> {
    for table in ["claims", "queued_runs", "data"] {
        connection.execute(&format!("DELETE FROM {table} WHERE session = ?1"), [session.as_str()])?;
    }
    connection.execute("DELETE FROM runs WHERE session = ?1", [row])?;
    connection.execute("DELETE FROM checkpoints WHERE session = ?1", [row])?;
    connection.execute("DELETE FROM moments WHERE session = ?1", [row])?;
    connection.execute("DELETE FROM links WHERE session = ?1", [row])?;
    connection.execute("DELETE FROM events WHERE session = ?1", [row])?;
    connection.execute("DELETE FROM sessions WHERE id = ?1", [row])?;
    Ok(())
}

/// The number of events that are dropped at once.
const PART: u64 = 4096;

/// Drops a part of the events up to a number. Returns the first that is left; `None` if there is no
/// such session.
pub(super) fn prune(
    connection: &Connection,
    session: &SessionId,
    through: u64,
) -> rusqlite::Result<Option<u64>> {
    let sql = "SELECT id, first, last FROM sessions WHERE name = ?1";
    let found = |row: &SqlRow<'_>| Ok((row.get::<_, i64>(0)?, number(row, 1)?, number(row, 2)?));
    let Some((row, first, last)) = connection.query_row(sql, [session.as_str()], found).optional()? else {
        return Ok(None);
    };
    let next = (through.min(last) + 1).min(first + PART).max(first);
    connection.execute("DELETE FROM events WHERE session = ?1 AND seq < ?2", params![row, next as i64])?;
    connection.execute("UPDATE sessions SET first = ?2 WHERE id = ?1", params![row, next as i64])?;
    if next > first {
        // They have dropped events.
        connection.execute("DELETE FROM checkpoints WHERE session = ?1", [row])?;
        connection.execute("DELETE FROM moments WHERE session = ?1", [row])?;
    }
    Ok(Some(next))
}

/// Records which program has written last.
pub(super) fn sign(connection: &Connection, program: &str) -> rusqlite::Result<()> {
    let mut sign = connection.prepare_cached("INSERT OR REPLACE INTO about VALUES ('written by', ?1)")?;
    sign.execute([program]).map(drop)
}

const SUMMARY: &str =
    "SELECT name, first, last, runs, run, created_at, updated_at, begun_at FROM sessions WHERE last > 0";

/// Reads a row; fields that can't be read are empty, and `damage` is the first reason.
fn summary(row: &SqlRow<'_>) -> rusqlite::Result<SessionSummary> {
    let name = match row.get_ref(0)? {
        ValueRef::Text(name) | ValueRef::Blob(name) => String::from_utf8_lossy(name).into_owned(),
        other => return Err(rusqlite::Error::InvalidColumnType(0, "name".to_owned(), other.data_type())),
    };
    let (id, mut damage) = match SessionId::parse_scoped(&name) {
        Ok(id) => (id, None),
        Err(error) => (nearest_id(&name), Some(error.to_string())),
    };
    let (first, last) = (readable(number(row, 1), &mut damage), readable(number(row, 2), &mut damage));
    let (runs, unfinished) = (readable(number(row, 3), &mut damage), readable(run(row, 4), &mut damage));
    let (created_at, updated_at) = (readable(time(row, 5), &mut damage), readable(time(row, 6), &mut damage));
    // One that can't be read sorts before all numbers: the next page begins with the first number.
    let begun_at = time(row, 7).unwrap_or(Timestamp::from_micros(i64::MAX.cast_unsigned()));
    let place = Place { at: begun_at, name };
    let cut = None;
    Ok(SessionSummary { id, first, last, runs, unfinished, cut, created_at, updated_at, place, damage })
}

/// Returns a value, or an empty one if it can't be read; the first reason stays.
fn readable<T: Default>(value: rusqlite::Result<T>, damage: &mut Option<String>) -> T {
    value.unwrap_or_else(|error| {
        damage.get_or_insert_with(|| error.to_string());
        T::default()
    })
}

pub(super) fn sessions(connection: &Connection) -> rusqlite::Result<Vec<SessionSummary>> {
    let sql = format!("{SUMMARY} ORDER BY updated_at DESC, id DESC");
    connection.prepare_cached(&sql)?.query_map([], summary)?.collect()
}

pub(super) fn list(connection: &Connection, listing: &Listing) -> rusqlite::Result<Vec<SessionSummary>> {
    let tenant = match &listing.part {
        Part::All => None,
        Part::Of(tenant) => Some(tenant.as_ref().map_or("", TenantName::as_str)),
    };
    // Not one statement with conditions that may be off: it would read all sessions.
    let of_part = if tenant.is_some() { "tenant = ?1" } else { "?1 IS NULL" };
    let sql = format!(
        "{SUMMARY} AND {of_part} AND (begun_at, name) < (?2, ?3)
            AND instr(lower(substr(name, instr(name, '/') + 1)), lower(?4))
        ORDER BY begun_at DESC, name DESC LIMIT ?5"
    );
    // The first page comes after a blob, which sorts before all times, readable ones or not.
    let at = listing.after.as_ref().map(|after| i64::try_from(after.at.as_micros()).unwrap_or(i64::MAX));
    let at = at.map_or_else(|| Value::Blob(vec![0xff; 64]), Value::Integer);
    let name = listing.after.as_ref().map_or("", |after| &after.name);
    let max = i64::try_from(listing.max).unwrap_or(i64::MAX);
    let mut rows = connection.prepare_cached(&sql)?;
    rows.query_map(params![tenant, at, name, listing.search, max], summary)?.collect()
}

/// Returns the sessions of a page that have a run that has not ended. An index has these alone.
pub(super) fn with_run(connection: &Connection, listing: &Listing) -> rusqlite::Result<Vec<SessionSummary>> {
    let mut rows = connection.prepare_cached(&format!("{SUMMARY} AND run IS NOT NULL"))?;
    let sessions: Vec<_> = rows.query_map([], summary)?.collect::<Result<_, _>>()?;
    Ok(listing.page(sessions))
}

pub(super) fn session(connection: &Connection, id: &SessionId) -> rusqlite::Result<Option<SessionSummary>> {
    connection
        .prepare_cached(&format!("{SUMMARY} AND name = ?1"))?
        .query_row([id.as_str()], summary)
        .optional()
}

/// Returns a page of a session's events; `None` if the session does not exist.
pub(super) fn page_of(
    connection: &Connection,
    session: &SessionId,
    from: u64,
    max: usize,
) -> rusqlite::Result<Option<Found>> {
    // A transaction, so that both reads see the same state.
    let _moment = connection.unchecked_transaction()?;
    let sql = "SELECT id, first, last FROM sessions WHERE name = ?1 AND last > 0";
    let known = |row: &SqlRow<'_>| Ok((row.get::<_, i64>(0)?, number(row, 1)?, number(row, 2)?));
    let known = connection.prepare_cached(sql)?.query_row([session.as_str()], known).optional()?;
    let Some((row, first, last)) = known else { return Ok(None) };
    let from = from.max(first);
    let wanted = from..=last.min(from.saturating_add(max as u64).saturating_sub(1));
    Ok(Some(Found { rows: page(connection, row, from, u64::MAX, max)?, wanted, last }))
}

/// Returns a page of the events in a range. Rows beyond one that the database itself can't read are
/// left out.
pub(super) fn page(
    connection: &Connection,
    row: i64,
    from: u64,
    through: u64,
    max: usize,
) -> rusqlite::Result<Vec<Row>> {
    let sql =
        "SELECT seq, event FROM events WHERE session = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq LIMIT ?4";
    let bound = |seq: u64| i64::try_from(seq).unwrap_or(i64::MAX);
    let mut rows = connection.prepare_cached(sql)?;
    let mut rows = rows.query(params![row, bound(from), bound(through), max as i64])?;
    let mut page = Vec::new();
    loop {
        match rows.next() {
            Ok(Some(row)) => {
                let event = row.get_ref(1)?.as_bytes_or_null()?.unwrap_or_default().to_vec();
                page.push(Row { seq: number(row, 0)?, event });
            }
            Ok(None) => return Ok(page),
            Err(_) if !page.is_empty() => return Ok(page),
            Err(error) => return Err(error),
        }
    }
}
