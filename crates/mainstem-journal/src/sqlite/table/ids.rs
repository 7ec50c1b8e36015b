//! Ids of rows: a file may have been changed by another program.

use mainstem_message::{RunId, SessionId};
use rusqlite::{Error, Result, Row, types::Type};

/// Reads a run's id; `None` if the row has none.
pub(super) fn run(row: &Row<'_>, index: usize) -> Result<Option<RunId>> {
    let id = row.get::<_, Option<String>>(index)?;
    id.map(|id| id.parse().map_err(|error| invalid(index, error))).transpose()
}

/// Reads the id of a session, which may be a tenant's.
pub(in super::super) fn session_id(row: &Row<'_>, index: usize) -> Result<SessionId> {
    SessionId::parse_scoped(&row.get::<_, String>(index)?).map_err(|error| invalid(index, error))
}

pub(in super::super) fn invalid(
    index: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> Error {
    Error::FromSqlConversionFailure(index, Type::Text, Box::new(error))
}
