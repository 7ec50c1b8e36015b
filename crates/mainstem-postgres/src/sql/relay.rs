//! The statements of requests between nodes.

use deadpool_postgres::Object as Client;
use mainstem_message::SessionId;

use super::{query, query_opt};
use crate::error::Result;

/// Stores a request to the node that has a session open, and tells that node; `None` if none has.
pub(crate) async fn ask(
    client: &Client,
    session: &SessionId,
    asker: i64,
    request: &[u8],
) -> Result<Option<i64>> {
    let sql = "WITH asked AS (
            INSERT INTO relayed (asker, owner, request) SELECT $2, s.node, $3 FROM sessions s
            JOIN nodes n ON n.no = s.node
            WHERE s.name = $1 AND s.node <> $2 AND n.lease_until > clock_timestamp() RETURNING id, owner)
        SELECT id, pg_notify('mainstem_node_' || owner, 'asked') FROM asked";
    let asked = query_opt(client, sql, &[&session.as_str(), &asker, &request]).await?;
    Ok(asked.map(|row| row.try_get(0)).transpose()?)
}

/// A request to this node.
pub(crate) struct Taken {
    pub(crate) id: i64,
    pub(crate) asker: i64,
    pub(crate) request: Vec<u8>,
}

/// Takes the requests to a node that have waited longest.
pub(crate) async fn take(client: &Client, owner: i64, most: i64) -> Result<Vec<Taken>> {
    let sql = "UPDATE relayed SET is_taken = true WHERE id IN (
            SELECT id FROM relayed WHERE owner = $1 AND NOT is_taken ORDER BY id LIMIT $2
            FOR UPDATE SKIP LOCKED) RETURNING id, asker, request";
    let taken = query(client, sql, &[&owner, &most]).await?;
    let taken = taken
        .iter()
        .map(|row| Ok(Taken { id: row.try_get(0)?, asker: row.try_get(1)?, request: row.try_get(2)? }));
    taken.collect()
}

/// Stores a part of an answer, the last one as `None`, and tells the asker. Returns how many parts
/// wait to be read, this one included; 0 if the request was withdrawn. Can be repeated.
pub(crate) async fn answer(
    client: &Client,
    id: i64,
    asker: i64,
    no: i64,
    part: Option<&[u8]>,
) -> Result<i64> {
    let sql = "WITH added AS (
            INSERT INTO relayed_parts SELECT id, $3, $4 FROM relayed WHERE id = $1 ON CONFLICT DO NOTHING)
        SELECT (SELECT count(*) FROM relayed_parts WHERE request = $1) + 1,
            pg_notify('mainstem_node_' || $2::int8, $1::int8::text) FROM relayed WHERE id = $1";
    let added = query_opt(client, sql, &[&id, &asker, &no, &part]).await?;
    Ok(added.map(|row| row.try_get(0)).transpose()?.unwrap_or(0))
}

/// Returns how many parts of an answer wait to be read; `None` if the request was withdrawn, or its
/// asker has ended.
pub(crate) async fn waiting(client: &Client, id: i64) -> Result<Option<i64>> {
    let sql = "SELECT (SELECT count(*) FROM relayed_parts WHERE request = $1) FROM relayed r
        JOIN nodes n ON n.no = r.asker AND n.lease_until > clock_timestamp() WHERE r.id = $1";
    Ok(query_opt(client, sql, &[&id]).await?.map(|row| row.try_get(0)).transpose()?)
}

/// Removes the requests that a node has taken and does not answer, and tells their askers.
pub(crate) async fn disown(client: &Client, owner: i64, answered: &[i64]) -> Result<()> {
    let sql = "WITH gone AS (
            DELETE FROM relayed WHERE owner = $1 AND is_taken AND id <> ALL($2) RETURNING id, asker)
        SELECT pg_notify('mainstem_node_' || asker, id::text) FROM gone";
    query(client, sql, &[&owner, &answered]).await.map(drop)
}

/// Returns the parts that have come from this number on, in order; the last of an answer is `None`.
/// Removes those before, which the asker has. Can be repeated.
pub(crate) async fn parts(client: &Client, id: i64, from: i64) -> Result<Vec<Option<Vec<u8>>>> {
    let sql = "WITH read AS (DELETE FROM relayed_parts WHERE request = $1 AND no < $2)
        SELECT part FROM relayed_parts WHERE request = $1 AND no >= $2 ORDER BY no";
    let rows = query(client, sql, &[&id, &from]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// What is known of a request that waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its receiver is alive.
    Waits,
    /// Its receiver has ended, and had not taken it. It is withdrawn.
    Untaken,
    /// Its receiver has ended after it took it, or the request is gone.
    Lost,
}

pub(crate) async fn standing(client: &Client, id: i64) -> Result<Standing> {
    let sql = "SELECT is_taken, EXISTS (
            SELECT FROM nodes n WHERE n.no = owner AND n.lease_until > clock_timestamp())
        FROM relayed WHERE id = $1";
    let Some(row) = query_opt(client, sql, &[&id]).await? else { return Ok(Standing::Lost) };
    if row.try_get(1)? {
        return Ok(Standing::Waits);
    }
    let sql = "DELETE FROM relayed WHERE id = $1 AND NOT is_taken RETURNING id";
    let untaken = query_opt(client, sql, &[&id]).await?.is_some();
    Ok(if untaken { Standing::Untaken } else { Standing::Lost })
}

/// Removes a request, and tells both sides.
pub(crate) async fn withdraw(client: &Client, id: i64) -> Result<()> {
    let sql = "WITH gone AS (DELETE FROM relayed WHERE id = $1 RETURNING owner, asker)
        SELECT pg_notify('mainstem_node_' || owner, $1::int8::text),
            pg_notify('mainstem_node_' || asker, $1::int8::text) FROM gone";
    query(client, sql, &[&id]).await.map(drop)
}
