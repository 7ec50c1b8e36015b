//! The statements on data beside the events of sessions.

use std::ops::Range;

use bytes::Bytes;
use deadpool_postgres::Object as Client;
use mainstem_journal::{DATA_WAITS, MAX_WAITING_DATA};
use mainstem_message::{DataId, SessionId};
use tokio_postgres::types::ToSql;

use super::{number, query, query_opt, signed};
use crate::error::Result;

/// Stores data of a session. Data that is stored already, of a session that has not begun, gets a
/// new time. Returns `false` if the tenant has too much data of such sessions.
pub(crate) async fn add(client: &Client, session: &SessionId, id: &DataId, bytes: &[u8]) -> Result<bool> {
    // Locks the session's row, so that a concurrent deletion ends first.
    let sql = "WITH begun AS (SELECT FROM sessions WHERE name = $1::text AND last > 0 FOR KEY SHARE)
        INSERT INTO data (session, id, bytes, waits_since)
            SELECT $1::text, $2::text, $3::bytea, CASE WHEN EXISTS (SELECT FROM begun) THEN NULL ELSE clock_timestamp() END
            WHERE EXISTS (SELECT FROM begun) OR length($3::bytea) + (
                SELECT coalesce(sum(length(bytes)), 0) FROM data d WHERE waits_since IS NOT NULL
                    AND CASE WHEN position('/' IN session) > 0 THEN split_part(session, '/', 1) ELSE '' END = $4::text
                    AND NOT EXISTS (SELECT FROM sessions WHERE name = d.session AND last > 0)
            ) <= $5::int8
        ON CONFLICT (session, id) DO UPDATE SET waits_since = excluded.waits_since
            WHERE data.waits_since IS NOT NULL AND excluded.waits_since IS NOT NULL
        RETURNING waits_since IS NOT NULL";
    let (tenant, most) = (session.tenant().unwrap_or_default(), signed(MAX_WAITING_DATA));
    let values: [&(dyn ToSql + Sync); 5] = [&session.as_str(), &id.as_str(), &bytes, &tenant, &most];
    let Some(stored) = query_opt(client, sql, &values).await? else {
        // No row was written: the data is stored already, or its tenant has reached the limit.
        return Ok(size(client, session, id).await?.is_some());
    };
    if stored.try_get::<_, bool>(0)? {
        remove_abandoned(client).await?;
    }
    Ok(true)
}

/// Removes old data of sessions that have not begun.
pub(crate) async fn remove_abandoned(client: &Client) -> Result<()> {
    let waits = DATA_WAITS.as_secs_f64();
    for (change, begun) in [("DELETE FROM data", "NOT"), ("UPDATE data SET waits_since = NULL", "")] {
        let sql = format!(
            "{change} WHERE waits_since < clock_timestamp() - $1::float8 * interval '1 second'
                AND {begun} EXISTS (SELECT FROM sessions WHERE name = data.session AND last > 0)"
        );
        query(client, &sql, &[&waits]).await?;
    }
    Ok(())
}

pub(crate) async fn size(client: &Client, session: &SessionId, id: &DataId) -> Result<Option<u64>> {
    let sql = "SELECT length(bytes)::int8 FROM data WHERE session = $1 AND id = $2";
    let row = query_opt(client, sql, &[&session.as_str(), &id.as_str()]).await?;
    row.map(|row| number(&row, 0)).transpose()
}

/// Returns a part of data.
pub(crate) async fn find(
    client: &Client,
    session: &SessionId,
    id: &DataId,
    part: &Range<u64>,
) -> Result<Option<Bytes>> {
    // A value has at most 1 GiB, so that offsets fit into an `i32`.
    let from = i32::try_from(part.start).unwrap_or(i32::MAX - 1);
    let count =
        i32::try_from(part.end.saturating_sub(part.start)).unwrap_or(i32::MAX).min(i32::MAX - 1 - from);
    let sql = "SELECT substring(bytes FROM $3 FOR $4) FROM data WHERE session = $1 AND id = $2";
    let values: [&(dyn ToSql + Sync); 4] = [&session.as_str(), &id.as_str(), &(from + 1), &count];
    let row = query_opt(client, sql, &values).await?;
    Ok(row.map(|row| row.try_get::<_, Vec<u8>>(0).map(Bytes::from)).transpose()?)
}
