//! The nodes of a database, for operators.

use std::time::Duration;

use crate::{
    Error, Settings,
    error::Result,
    pool::{Connector, get},
    schema, sql,
};

/// A node of a database, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeView {
    /// Its number; each process that joins has one of its own.
    pub no: i64,
    /// Its name, that of its host unless it was set.
    pub name: String,
    /// The program, and its version.
    pub program: String,
    /// How long it has been a node.
    pub joined: Duration,
    /// How much is left of its lease; `None` if it has ended.
    pub lease: Option<Duration>,
    /// Whether it was asked to stop.
    pub is_draining: bool,
    /// How many sessions it has open.
    pub sessions: u64,
    /// How many of these have a run that has not ended.
    pub runs: u64,
}

/// Returns the nodes that are alive, and those that have ended within the last day or still have
/// sessions, the latest first.
///
/// # Errors
/// The database can't be reached or read, or has no tables.
pub async fn nodes(settings: &Settings) -> Result<Vec<NodeView>, Error> {
    with(settings, "read the nodes of", async |client| sql::nodes(client).await).await
}

/// Returns `true` if the role may read and write the tables, as a node needs.
///
/// # Errors
/// Those of [`nodes`], or the tables are those of another version that this program does not work
/// with.
pub async fn may_serve(settings: &Settings) -> Result<bool, Error> {
    let what = "read the tables of";
    let pool = Connector::new(settings.clone())?.pool(1)?;
    let client = get(&pool).await.map_err(|failure| failure.at("connect to", settings.place()))?;
    schema::check_existing(&client, settings.place()).await?;
    sql::may_serve(&client).await.map_err(|failure| failure.at(what, settings.place()))
}

/// Asks the nodes of a name, or of a number, to stop as a signal would stop them. Returns how many
/// are alive and were asked.
///
/// # Errors
/// Those of [`nodes`].
pub async fn drain(settings: &Settings, name: &str) -> Result<u64, Error> {
    with(settings, "write the nodes of", async |client| sql::drain(client, name).await).await
}

async fn with<T>(
    settings: &Settings,
    what: &'static str,
    request: impl AsyncFnOnce(&deadpool_postgres::Object) -> Result<T>,
) -> Result<T, Error> {
    let pool = Connector::new(settings.clone())?.pool(1)?;
    let client = get(&pool).await.map_err(|failure| failure.at("connect to", settings.place()))?;
    if !schema::exists(&client).await.map_err(|failure| failure.at(what, settings.place()))? {
        return Err(Error::Empty { place: settings.place().to_owned() });
    }
    request(&client).await.map_err(|failure| failure.at(what, settings.place()))
}
