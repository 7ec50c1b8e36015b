//! The statements of requests: one session, or one key, at a time.

pub(crate) mod data;
pub(crate) mod jobs;
pub(crate) mod links;
pub(crate) mod queued;
pub(crate) mod relay;
pub(crate) mod tasks;

use std::time::Duration;

use deadpool_postgres::Object as Client;
use mainstem_event::{Position, Timestamp};
use mainstem_journal::{
    ActiveSession, Checkpoint, Claim, Listing, Part, Place, RunPlace, SessionSummary,
    backend::{Found, Head, Row, nearest_id},
};
use mainstem_message::{RunId, SessionId, TenantName};
use tokio_postgres::{Client as Connected, Row as SqlRow, types::ToSql};

use crate::{
    NodeView,
    error::{Failure, Result},
};

/// A session is free if it has no node, or one whose lease is over.
macro_rules! free {
    () => {
        "(s.node IS NULL OR s.node = $2 OR NOT EXISTS
            (SELECT FROM nodes n WHERE n.no = s.node AND n.lease_until > clock_timestamp()))"
    };
}

/// A session that was taken: its number, its epoch, and what is recorded of it.
pub(crate) struct Taken {
    pub(crate) no: i64,
    pub(crate) epoch: i64,
    pub(crate) head: Head,
}

pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn number(row: &SqlRow, index: usize) -> Result<u64> {
    Ok(row.try_get::<_, i64>(index)?.max(0).cast_unsigned())
}

fn time(row: &SqlRow, index: usize) -> Result<Timestamp> {
    number(row, index).map(Timestamp::from_micros)
}

fn run(row: &SqlRow, index: usize) -> Result<Option<RunId>> {
    let id: Option<String> = row.try_get(index)?;
    id.map(|id| id.parse().map_err(|error| Failure::permanent(format!("{error}")))).transpose()
}

fn session_id(name: &str) -> Result<SessionId> {
    SessionId::parse_scoped(name).map_err(|error| Failure::permanent(format!("{error}")))
}

async fn query(client: &Client, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<SqlRow>> {
    Ok(client.query(&client.prepare_cached(sql).await?, values).await?)
}

async fn query_opt(client: &Client, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Option<SqlRow>> {
    Ok(client.query_opt(&client.prepare_cached(sql).await?, values).await?)
}

/// Takes a session for a node, and creates it; `None` if another node that is alive has it.
pub(crate) async fn take(client: &Client, session: &SessionId, node: i64) -> Result<Option<Taken>> {
    // A row that conflicts is locked even if it is not changed, after what its node writes.
    let sql = concat!(
        "INSERT INTO sessions AS s (name, node, epoch) SELECT $1, $2, 1 WHERE NOT EXISTS (
            SELECT FROM sessions s WHERE s.name = $1 AND NOT ",
        free!(),
        ")
        ON CONFLICT (name) DO UPDATE SET node = $2, epoch = s.epoch + 1, cut = coalesce(s.run, s.cut) WHERE ",
        free!(),
        " RETURNING no, epoch, last, updated_at, run, streams, runs, created_at, begun_at"
    );
    let Some(row) = query_opt(client, sql, &[&session.as_str(), &node]).await? else { return Ok(None) };
    let mut head = Head::default();
    head.position = position(&row)?;
    (head.runs, head.created_at, head.begun_at) = (number(&row, 6)?, time(&row, 7)?, time(&row, 8)?);
    Ok(Some(Taken { no: row.try_get(0)?, epoch: row.try_get(1)?, head }))
}

fn position(row: &SqlRow) -> Result<Position> {
    let mut position = Position::default();
    (position.last, position.at) = (number(row, 2)?, time(row, 3)?);
    (position.run, position.streams) = (run(row, 4)?, number(row, 5)?);
    Ok(position)
}

/// Returns `true` if another node that is alive has the session.
pub(crate) async fn is_open(client: &Client, session: &SessionId, node: i64) -> Result<bool> {
    let sql = "SELECT FROM sessions s JOIN nodes n ON n.no = s.node
        WHERE s.name = $1 AND s.node <> $2 AND n.lease_until > clock_timestamp()";
    Ok(query_opt(client, sql, &[&session.as_str(), &node]).await?.is_some())
}

/// Returns some sessions with an unfinished run, or one that was cut off and is not resumed yet,
/// and without a node that is alive: any of them, so that those which can't be opened are not in
/// the way of others.
pub(crate) async fn abandoned(client: &Client) -> Result<Vec<SessionId>> {
    let sql = "SELECT name FROM sessions s WHERE no IN
            (SELECT no FROM sessions WHERE run IS NOT NULL
                UNION ALL SELECT no FROM sessions WHERE cut IS NOT NULL
                UNION ALL SELECT no FROM sessions JOIN queued_runs ON session = name)
            AND NOT EXISTS
            (SELECT FROM nodes n WHERE n.no = s.node AND n.lease_until > clock_timestamp())
        ORDER BY random() LIMIT 100";
    let names = query(client, sql, &[]).await?;
    let names: Vec<&str> = names.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    Ok(names.into_iter().filter_map(|name| session_id(name).ok()).collect())
}

/// Forgets that a session has a run that was cut off, if the node has the session open.
pub(crate) async fn forget_cut(client: &Client, session: &SessionId, node: i64) -> Result<()> {
    let sql = "UPDATE sessions SET cut = NULL WHERE name = $1 AND node = $2";
    query(client, sql, &[&session.as_str(), &node]).await.map(drop)
}

/// Returns the number of a session that has had an event.
pub(crate) async fn no_of(client: &Client, session: &SessionId) -> Result<Option<i64>> {
    let sql = "SELECT no FROM sessions WHERE name = $1 AND last > 0";
    let row = query_opt(client, sql, &[&session.as_str()]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

const SUMMARY: &str =
    "SELECT name, first, last, runs, run, created_at, updated_at, begun_at, cut FROM sessions WHERE last > 0";

/// Reads a row; fields that can't be read are empty, and `damage` is the first reason.
fn summary(row: &SqlRow) -> Result<SessionSummary> {
    let name: String = row.try_get(0)?;
    let id = SessionId::parse_scoped(&name).unwrap_or_else(|_| nearest_id(&name));
    let mut summary = SessionSummary::new(id);
    summary.damage = SessionId::parse_scoped(&name).err().map(|error| error.to_string());
    (summary.first, summary.last, summary.runs) = (number(row, 1)?, number(row, 2)?, number(row, 3)?);
    match run(row, 4) {
        Ok(run) => summary.unfinished = run,
        Err(failure) => summary.damage = Some(failure.to_string()),
    }
    summary.cut = run(row, 8).unwrap_or_default();
    (summary.created_at, summary.updated_at) = (time(row, 5)?, time(row, 6)?);
    summary.place = Place { at: time(row, 7)?, name };
    Ok(summary)
}

pub(crate) async fn sessions(client: &Client) -> Result<Vec<SessionSummary>> {
    let sql = format!("{SUMMARY} ORDER BY updated_at DESC, no DESC");
    query(client, &sql, &[]).await?.iter().map(summary).collect()
}

/// Returns the value that the columns `tenant` have in a part; `None` for all.
fn tenant_of(part: &Part) -> Option<&str> {
    match part {
        Part::All => None,
        Part::Of(tenant) => Some(tenant.as_ref().map_or("", TenantName::as_str)),
    }
}

pub(crate) async fn list(client: &Client, listing: &Listing) -> Result<Vec<SessionSummary>> {
    let tenant = tenant_of(&listing.part);
    // Not one statement with conditions that may be off: it would read all sessions.
    let of_part = if tenant.is_some() { "tenant = $1" } else { "$1::text IS NULL" };
    let sql = format!(
        "{SUMMARY} AND {of_part} AND (begun_at, name) < ($2, $3)
            AND position(lower($4) in lower(substr(name, position('/' in name) + 1))) > 0
        ORDER BY begun_at DESC, name DESC LIMIT $5"
    );
    let (at, name) = match &listing.after {
        Some(after) => (signed(after.at.as_micros()), &*after.name),
        None => (i64::MAX, ""),
    };
    let values: [&(dyn ToSql + Sync); 5] =
        [&tenant, &at, &name, &listing.search, &signed(listing.max as u64)];
    query(client, &sql, &values).await?.iter().map(summary).collect()
}

/// Returns the sessions with a run that has not ended, and the node that has each open.
pub(crate) async fn active(client: &Client, part: &Part, max: usize) -> Result<Vec<ActiveSession>> {
    let tenant = tenant_of(part);
    let of_part = if tenant.is_some() { "s.tenant = $1" } else { "$1::text IS NULL" };
    let sql = format!(
        "SELECT s.name, first, last, runs, run, created_at, updated_at, begun_at, cut, n.name
        FROM sessions s LEFT JOIN nodes n ON n.no = s.node AND n.lease_until > clock_timestamp()
        WHERE last > 0 AND run IS NOT NULL AND {of_part} ORDER BY begun_at DESC, s.name DESC LIMIT $2"
    );
    let rows = query(client, &sql, &[&tenant, &signed(max as u64)]).await?;
    let active = |row: &SqlRow| {
        let node: Option<String> = row.try_get(9)?;
        Ok(ActiveSession { session: summary(row)?, is_open: node.is_some(), node })
    };
    rows.iter().map(active).collect()
}

pub(crate) async fn session(client: &Client, id: &SessionId) -> Result<Option<SessionSummary>> {
    let found = query_opt(client, &format!("{SUMMARY} AND name = $1"), &[&id.as_str()]).await?;
    found.as_ref().map(summary).transpose()
}

/// Returns a page of a session's events; `None` if the session does not exist.
pub(crate) async fn page_of(client: &Client, id: &SessionId, from: u64, max: usize) -> Result<Option<Found>> {
    // One statement, so that all of it is of one moment.
    let sql = "SELECT s.first, s.last, e.seq, e.event FROM sessions s LEFT JOIN LATERAL (
            SELECT seq, event FROM events WHERE session = s.no AND seq >= greatest($2, s.first)
            ORDER BY seq LIMIT $3) e ON true
        WHERE s.name = $1 AND s.last > 0 ORDER BY e.seq";
    let rows = query(client, sql, &[&id.as_str(), &signed(from), &signed(max as u64)]).await?;
    let Some(any) = rows.first() else { return Ok(None) };
    let (first, last) = (number(any, 0)?, number(any, 1)?);
    let from = from.max(first);
    let wanted = from..=last.min(from.saturating_add(max as u64).saturating_sub(1));
    let has_event = |row: &&SqlRow| row.try_get::<_, Option<i64>>(2).ok().flatten().is_some();
    let rows = rows.iter().filter(has_event).map(|row| event(row, 2)).collect::<Result<_>>()?;
    Ok(Some(Found { rows, wanted, last }))
}

fn event(row: &SqlRow, index: usize) -> Result<Row> {
    let event: String = row.try_get(index + 1)?;
    Ok(Row { seq: number(row, index)?, event: event.into_bytes() })
}

/// Returns a page of the events in a range.
pub(crate) async fn page(client: &Client, no: i64, from: u64, through: u64, max: usize) -> Result<Vec<Row>> {
    let sql =
        "SELECT seq, event FROM events WHERE session = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq LIMIT $4";
    let values: [&(dyn ToSql + Sync); 4] = [&no, &signed(from), &signed(through), &signed(max as u64)];
    query(client, sql, &values).await?.iter().map(|row| event(row, 0)).collect()
}

/// Returns how many bytes the events of each session have.
pub(crate) async fn sizes(client: &Client) -> Result<Vec<(SessionId, u64)>> {
    let sql = "SELECT s.name, e.bytes
            + (SELECT coalesce(sum(length(bytes)), 0)::int8 FROM data d WHERE d.session = s.name)
        FROM sessions s JOIN
            (SELECT session, sum(octet_length(event))::int8 AS bytes FROM events GROUP BY session) e
        ON e.session = s.no";
    let rows = query(client, sql, &[]).await?;
    // A session whose id can't be read is shown as damaged elsewhere.
    let size = |row: &SqlRow| Some((session_id(row.try_get(0).ok()?).ok()?, number(row, 1).ok()?));
    Ok(rows.iter().filter_map(size).collect())
}

/// Returns the place of a run.
pub(crate) async fn place_of(client: &Client, id: &RunId) -> Result<Option<RunPlace>> {
    let sql =
        "SELECT name, runs.first FROM runs JOIN sessions ON sessions.no = runs.session WHERE runs.run = $1";
    let Some(row) = query_opt(client, sql, &[&id.as_str()]).await? else { return Ok(None) };
    Ok(Some(RunPlace { session: session_id(row.try_get(0)?)?, first: number(&row, 1)? }))
}

/// Claims a key, or returns the earlier claim of it.
pub(crate) async fn claim(client: &Client, claim: &Claim) -> Result<Option<Claim>> {
    let Claim { key, digest, session, run, at } = claim;
    let (at, oldest) = (signed(at.as_micros()), signed(claim.oldest_remembered().as_micros()));
    let sql = "INSERT INTO claims AS c VALUES ($1, $2, $3, $4, $5) ON CONFLICT (key) DO UPDATE
        SET digest = $2, session = $3, run = $4, at = $5 WHERE c.at < $6 RETURNING key";
    let values: [&(dyn ToSql + Sync); 6] = [key, digest, &session.as_str(), &run.as_str(), &at, &oldest];
    if query_opt(client, sql, &values).await?.is_some() {
        query(client, "DELETE FROM claims WHERE at < $1", &[&oldest]).await?;
        return Ok(None);
    }
    let sql = "SELECT digest, session, run, at FROM claims WHERE key = $1";
    let Some(row) = query_opt(client, sql, &[key]).await? else {
        return Err(Failure::transient("the earlier claim of the key was just removed"));
    };
    let (session, run) = (session_id(row.try_get(1)?)?, self::run(&row, 2)?);
    let run = run.ok_or_else(|| Failure::permanent("a claim has no run"))?;
    Ok(Some(Claim { key: key.clone(), digest: row.try_get(0)?, session, run, at: time(&row, 3)? }))
}

pub(crate) async fn checkpoint(client: &Client, session: &SessionId) -> Result<Option<Checkpoint>> {
    let sql =
        "SELECT c.seq, c.state FROM checkpoints c JOIN sessions s ON s.no = c.session WHERE s.name = $1";
    let Some(row) = query_opt(client, sql, &[&session.as_str()]).await? else { return Ok(None) };
    Ok(Some(Checkpoint { seq: number(&row, 0)?, state: row.try_get(1)? }))
}

pub(crate) async fn store_checkpoint(client: &Client, id: &SessionId, checkpoint: &Checkpoint) -> Result<()> {
    let sql = "INSERT INTO checkpoints SELECT no, $2, $3 FROM sessions WHERE name = $1 AND $2 <= last
        ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, state = excluded.state";
    query(client, sql, &[&id.as_str(), &signed(checkpoint.seq), &checkpoint.state]).await.map(drop)
}

pub(crate) async fn moment(client: &Client, session: &SessionId, seq: u64) -> Result<Option<Checkpoint>> {
    let sql = "SELECT m.seq, m.state FROM moments m JOIN sessions s ON s.no = m.session
        WHERE s.name = $1 AND m.first = s.first AND m.seq <= $2 ORDER BY m.seq DESC LIMIT 1";
    let Some(row) = query_opt(client, sql, &[&session.as_str(), &signed(seq)]).await? else {
        return Ok(None);
    };
    Ok(Some(Checkpoint { seq: number(&row, 0)?, state: row.try_get(1)? }))
}

pub(crate) async fn store_moment(client: &Client, id: &SessionId, moment: &Checkpoint) -> Result<()> {
    let sql = "INSERT INTO moments SELECT no, $2, first, $3 FROM sessions WHERE name = $1
        ON CONFLICT (session, seq) DO UPDATE SET state = excluded.state, first = excluded.first";
    query(client, sql, &[&id.as_str(), &signed(moment.seq), &moment.state]).await.map(drop)
}

/// Deletes a session. Returns whether it had an event, or `None` if a node that is alive has it.
pub(crate) async fn delete(client: &mut Client, session: &SessionId, node: i64) -> Result<Option<bool>> {
    let name = session.as_str();
    let sql = concat!("SELECT no, last > 0, ", free!(), " FROM sessions s WHERE name = $1 FOR UPDATE");
    let change = client.transaction().await?;
    let Some(row) = change.query_opt(sql, &[&name, &node]).await? else { return Ok(Some(false)) };
    if !row.try_get::<_, bool>(2)? {
        return Ok(None);
    }
    let no: i64 = row.try_get(0)?;
    for table in ["events", "runs", "checkpoints"] {
        change.execute(&format!("DELETE FROM {table} WHERE session = $1"), &[&no]).await?;
    }
    for table in ["claims", "queued_runs", "data"] {
        change.execute(&format!("DELETE FROM {table} WHERE session = $1"), &[&name]).await?;
    }
    change.execute("DELETE FROM sessions WHERE no = $1", &[&no]).await?;
    change.commit().await?;
    Ok(Some(row.try_get(1)?))
}

/// Joins the nodes; returns the number of the new one. Nodes that are long gone are removed.
pub(crate) async fn join(client: &Connected, name: &str, program: &str, lease: Duration) -> Result<i64> {
    forget_relayed(client).await?;
    client.execute("DELETE FROM nodes WHERE lease_until < clock_timestamp() - interval '1 day'", &[]).await?;
    let sql = "INSERT INTO nodes (name, program, lease_until)
        VALUES ($1, $2, clock_timestamp() + $3::float8 * interval '1 second') RETURNING no";
    Ok(client.query_one(sql, &[&name, &program, &lease.as_secs_f64()]).await?.try_get(0)?)
}

/// Renews a node's lease; returns whether it was asked to stop, or `None` if it has ended.
pub(crate) async fn renew(client: &Connected, node: i64, lease: Duration) -> Result<Option<bool>> {
    let sql = "UPDATE nodes SET lease_until = clock_timestamp() + $2::float8 * interval '1 second'
        WHERE no = $1 AND lease_until > clock_timestamp() RETURNING is_draining";
    let renewed = client.query_opt(sql, &[&node, &lease.as_secs_f64()]).await?;
    forget_relayed(client).await?;
    Ok(renewed.map(|row| row.try_get(0)).transpose()?)
}

/// Removes the requests of nodes that have ended, with what they carry.
async fn forget_relayed(client: &Connected) -> Result<()> {
    let sql = "DELETE FROM relayed r WHERE asked_at < clock_timestamp() - interval '1 minute' AND NOT EXISTS
        (SELECT FROM nodes n WHERE n.no = r.asker AND n.lease_until > clock_timestamp())";
    client.execute(sql, &[]).await?;
    Ok(())
}

/// Returns `true` if the role has the rights of a node.
pub(crate) async fn may_serve(client: &Client) -> Result<bool> {
    let sql = "SELECT bool_and(CASE c.relkind
            WHEN 'S' THEN has_sequence_privilege(c.oid, 'USAGE')
            ELSE has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
                AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')
            END) AND NOT pg_is_in_recovery()
        FROM pg_class c WHERE c.relnamespace = 'mainstem'::regnamespace AND c.relkind IN ('r', 'p', 'S')";
    Ok(client.query_one(sql, &[]).await?.try_get::<_, Option<bool>>(0)?.unwrap_or_default())
}

/// Returns the nodes, the latest first.
pub(crate) async fn nodes(client: &Client) -> Result<Vec<NodeView>> {
    let sql = "SELECT n.no, n.name, n.program, n.is_draining,
            extract(epoch FROM clock_timestamp() - n.joined_at)::float8,
            extract(epoch FROM n.lease_until - clock_timestamp())::float8,
            count(s.no), count(s.run)
        FROM nodes n LEFT JOIN sessions s ON s.node = n.no GROUP BY n.no ORDER BY n.no DESC";
    let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let node = |row: &SqlRow| {
        let left: f64 = row.try_get(5)?;
        Ok(NodeView {
            no: row.try_get(0)?,
            name: row.try_get(1)?,
            program: row.try_get(2)?,
            is_draining: row.try_get(3)?,
            joined: seconds(row.try_get(4)?),
            lease: (left > 0.0).then(|| seconds(left)),
            sessions: number(row, 6)?,
            runs: number(row, 7)?,
        })
    };
    query(client, sql, &[]).await?.iter().map(node).collect()
}

/// Asks the nodes of a name, or of a number, to stop; returns how many are alive.
pub(crate) async fn drain(client: &Client, name: &str) -> Result<u64> {
    let sql = "UPDATE nodes SET is_draining = true
        WHERE (name = $1 OR no::text = $1) AND lease_until > clock_timestamp() RETURNING no";
    Ok(query(client, sql, &[&name]).await?.len() as u64)
}

/// Ends a node's lease, so that others may take its sessions over at once.
pub(crate) async fn leave(client: &Client, node: i64) -> Result<()> {
    query(client, "UPDATE nodes SET lease_until = clock_timestamp() WHERE no = $1", &[&node]).await.map(drop)
}

/// The number of events that are dropped at once.
const PART: u64 = 4096;

/// Drops a part of the events up to a number. Returns the first that is left; `None` if there is no
/// such session.
pub(crate) async fn prune(client: &mut Client, session: &SessionId, through: u64) -> Result<Option<u64>> {
    let change = client.transaction().await?;
    let sql = "SELECT no, first, last FROM sessions WHERE name = $1 FOR UPDATE";
    let Some(row) = change.query_opt(sql, &[&session.as_str()]).await? else { return Ok(None) };
    let (no, first, last): (i64, _, _) = (row.try_get(0)?, number(&row, 1)?, number(&row, 2)?);
    let next = (through.min(last) + 1).min(first + PART).max(first);
    if next > first {
        let next = signed(next);
        change.execute("DELETE FROM events WHERE session = $1 AND seq < $2", &[&no, &next]).await?;
        change.execute("UPDATE sessions SET first = $2 WHERE no = $1", &[&no, &next]).await?;
        // They have dropped events.
        change.execute("DELETE FROM checkpoints WHERE session = $1", &[&no]).await?;
        change.execute("DELETE FROM moments WHERE session = $1", &[&no]).await?;
    }
    change.commit().await?;
    Ok(Some(next))
}
