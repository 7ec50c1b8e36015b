//! The statements on links of sessions.

use deadpool_postgres::Object as Client;
use mainstem_journal::Link;
use mainstem_message::{LinkId, SessionId};
use tokio_postgres::{Row, types::ToSql};

use super::{number, query, query_opt, session_id, signed, time};
use crate::error::{Failure, Result};

const FIELDS: &str = "l.id, s.name, l.created_at, l.expires_at, l.through";

fn read(row: &Row) -> Result<Link> {
    let id: &str = row.try_get(0)?;
    let id = id.parse().map_err(|error| Failure::permanent(format!("a link is damaged: {error}")))?;
    let has_end = row.try_get::<_, Option<i64>>(4)?.is_some();
    let through = has_end.then(|| number(row, 4)).transpose()?;
    let session = session_id(row.try_get(1)?)?;
    Ok(Link { id, session, created_at: time(row, 2)?, expires_at: time(row, 3)?, through })
}

/// Stores a link; returns `false` if its session does not exist. Does nothing the second time.
pub(crate) async fn add(client: &Client, link: &Link) -> Result<bool> {
    let Link { id, session, created_at, expires_at, through } = link;
    let (created_at, expires_at) = (signed(created_at.as_micros()), signed(expires_at.as_micros()));
    query(client, "DELETE FROM links WHERE expires_at <= $1", &[&created_at]).await?;
    let sql = "INSERT INTO links (id, session, created_at, expires_at, through)
        SELECT $2, no, $3, $4, $5 FROM (SELECT no FROM sessions WHERE name = $1 AND last > 0 FOR KEY SHARE) s
        ON CONFLICT (id) DO UPDATE SET through = excluded.through RETURNING id";
    let values: [&(dyn ToSql + Sync); 5] =
        [&session.as_str(), &id.as_str(), &created_at, &expires_at, &through.map(signed)];
    Ok(query_opt(client, sql, &values).await?.is_some())
}

pub(crate) async fn find(client: &Client, id: &LinkId) -> Result<Option<Link>> {
    let sql = format!("SELECT {FIELDS} FROM links l JOIN sessions s ON s.no = l.session WHERE l.id = $1");
    query_opt(client, &sql, &[&id.as_str()]).await?.as_ref().map(read).transpose()
}

/// Returns the links of a session, the oldest first.
pub(crate) async fn of(client: &Client, session: &SessionId) -> Result<Vec<Link>> {
    let sql = format!(
        "SELECT {FIELDS} FROM links l JOIN sessions s ON s.no = l.session WHERE s.name = $1
        ORDER BY l.created_at, l.id"
    );
    query(client, &sql, &[&session.as_str()]).await?.iter().map(read).collect()
}

pub(crate) async fn remove(client: &Client, id: &LinkId) -> Result<bool> {
    let removed = query_opt(client, "DELETE FROM links WHERE id = $1 RETURNING id", &[&id.as_str()]).await?;
    Ok(removed.is_some())
}
