//! The statements on data beside the events of sessions.

use bytes::Bytes;
use deadpool_postgres::Object as Client;
use mainstem_journal::DATA_WAITS;
use mainstem_message::{DataId, SessionId};

use super::{query, query_opt};
use crate::error::Result;

/// Stores data of a session. Does nothing if it is stored.
pub(crate) async fn add(client: &Client, session: &SessionId, id: &DataId, bytes: &[u8]) -> Result<()> {
    let sql = "INSERT INTO data (session, id, bytes, waits_since) VALUES ($1, $2, $3,
            CASE WHEN EXISTS (SELECT 1 FROM sessions WHERE name = $1 AND last > 0) THEN NULL
            ELSE clock_timestamp() END)
        ON CONFLICT DO NOTHING RETURNING waits_since IS NOT NULL";
    let stored = query_opt(client, sql, &[&session.as_str(), &id.as_str(), &bytes]).await?;
    match stored {
        Some(row) if row.try_get::<_, bool>(0)? => remove_abandoned(client).await,
        _ => Ok(()),
    }
}

/// Removes data that has waited too long for its session to begin.
async fn remove_abandoned(client: &Client) -> Result<()> {
    let waits = DATA_WAITS.as_secs_f64();
    let begun = "UPDATE data SET waits_since = NULL
        WHERE waits_since < clock_timestamp() - $1::float8 * interval '1 second'
            AND EXISTS (SELECT 1 FROM sessions WHERE name = data.session AND last > 0)";
    query(client, begun, &[&waits]).await?;
    let abandoned =
        "DELETE FROM data WHERE waits_since < clock_timestamp() - $1::float8 * interval '1 second'";
    query(client, abandoned, &[&waits]).await.map(drop)
}

pub(crate) async fn find(client: &Client, session: &SessionId, id: &DataId) -> Result<Option<Bytes>> {
    let sql = "SELECT bytes FROM data WHERE session = $1 AND id = $2";
    let row = query_opt(client, sql, &[&session.as_str(), &id.as_str()]).await?;
    Ok(row.map(|row| row.try_get::<_, Vec<u8>>(0).map(Bytes::from)).transpose()?)
}
