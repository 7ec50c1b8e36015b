//! The tables: creating and changing them, and which versions of them this program works with.

use std::{error::Error as StdError, time::Duration};

use refinery::Migration;
use tokio::time::sleep;
use tokio_postgres::{Client, error::SqlState};

use crate::{
    Error, Settings,
    error::{Failure, Result, with_sources},
    pool::{Connector, get},
};

mod migrations {
    refinery::embed_migrations!("migrations");
}

/// Held while the tables are changed: "MSTM".
const LOCK: i64 = 0x4d53_544d;

/// How long a change waits for a table that a transaction uses, such as that of `pg_dump`. Nodes
/// that need the table wait behind it.
const WAIT: &str = "1s";

/// How often a change is tried whose tables are in use, and the time between, in which nodes work.
const ATTEMPTS: usize = 60;
const PAUSE: Duration = Duration::from_secs(1);

/// Why a change is not made whose tables were in use at each attempt.
const IN_USE: &str = "a transaction uses them for too long, such as a backup (pg_stat_activity has it); \
    try again once it has ended";

/// What [`migrate`] has done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migrated {
    /// The version of the tables before; `None` if there were none.
    pub from: Option<i32>,
    /// Their version now.
    pub to: i32,
}

/// Creates the tables, or changes those of an earlier version, which nodes of the version before
/// survive. Does nothing if they are up to date. Concurrent calls wait for each other. Tables that
/// a transaction uses are waited for, two minutes at most, and nodes go on meanwhile.
///
/// # Errors
/// The database can't be reached or changed, its tables are those of a later version, or a
/// transaction uses them for too long. Each change is made whole or not at all.
pub async fn migrate(settings: &Settings) -> Result<Migrated, Error> {
    let pool = Connector::new(settings.clone())?.pool(1)?;
    let mut client = get(&pool).await.map_err(|failure| failure.at("connect to", settings.place()))?;
    let changed = change(&mut client).await;
    changed.map_err(|failure| failure.at("change the tables of", settings.place()))
}

/// Checks that this program works with the tables; creates them in an empty database.
pub(crate) async fn check(client: &mut Client, place: &str) -> Result<(), Error> {
    match check_existing(client, place).await {
        Err(Error::Empty { .. }) => {
            let created = change(client).await;
            created.map(drop).map_err(|failure| failure.at("create the tables of", place))
        }
        checked => checked,
    }
}

/// Checks that this program works with the tables, and that there are any.
pub(crate) async fn check_existing(client: &Client, place: &str) -> Result<(), Error> {
    let found = version(client).await.map_err(|failure| failure.at("read the tables of", place))?;
    let (place, known) = (place.to_owned(), known());
    match found {
        None => Err(Error::Empty { place }),
        Some((version, _)) if version < known => Err(Error::Older { place, version, known }),
        Some((version, oldest)) if oldest > known => Err(Error::Newer { place, version, known }),
        Some(_) => Ok(()),
    }
}

/// The version of the tables that this program makes.
fn known() -> i32 {
    let runner = migrations::migrations::runner();
    runner.get_migrations().iter().map(Migration::version).max().unwrap_or_default()
}

/// Returns the version of the tables, and that of the oldest programs that work with them; `None`
/// if the database has no tables of Mainstem.
async fn version(client: &Client) -> Result<Option<(i32, i32)>> {
    if !exists(client).await? {
        return Ok(None);
    }
    let versions = "SELECT (SELECT max(version) FROM mainstem.refinery_schema_history),
        (SELECT value::int FROM mainstem.about WHERE name = 'compatible from')";
    let row = client.query_one(versions, &[]).await?;
    let version: Option<i32> = row.try_get(0)?;
    Ok(Some((version.unwrap_or_default(), row.try_get::<_, Option<i32>>(1)?.unwrap_or_default())))
}

/// Returns `true` if there are tables.
pub(crate) async fn exists(client: &Client) -> Result<bool> {
    let exists = "SELECT to_regclass('mainstem.about') IS NOT NULL";
    Ok(client.query_one(exists, &[]).await?.try_get(0)?)
}

async fn change(client: &mut Client) -> Result<Migrated> {
    // Waiting for another, and rewriting a large table, take as long as they take.
    client.batch_execute("SET lock_timeout = 0; SET statement_timeout = 0").await?;
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await?;
    let changed = change_locked(client).await;
    // Ends with the connection in any case.
    client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await?;
    changed
}

async fn change_locked(client: &mut Client) -> Result<Migrated> {
    let (from, to) = (version(client).await?.map(|(version, _)| version), known());
    if from.is_some_and(|from| from > to) {
        return Err(Failure::permanent(format!(
            "they have version {}, and this program knows versions up to {to}; use a later program",
            from.unwrap_or_default()
        )));
    }
    client.batch_execute("CREATE SCHEMA IF NOT EXISTS mainstem; SET search_path = mainstem").await?;
    client.batch_execute(&format!("SET lock_timeout = '{WAIT}'")).await?;
    for attempt in 1.. {
        match migrations::migrations::runner().set_grouped(false).run_async(client).await {
            Ok(_) => break,
            Err(error) if !is_in_use(&error) => return Err(Failure::permanent(with_sources(&error))),
            Err(_) if attempt == ATTEMPTS => return Err(Failure::permanent(IN_USE)),
            Err(_) if attempt == 1 => tracing::warn!("the tables are in use; trying again"),
            Err(_) => {}
        }
        sleep(PAUSE).await;
    }
    Ok(Migrated { from, to })
}

fn is_in_use(error: &(dyn StdError + 'static)) -> bool {
    let code = error.downcast_ref::<tokio_postgres::Error>().and_then(tokio_postgres::Error::code);
    code == Some(&SqlState::LOCK_NOT_AVAILABLE) || error.source().is_some_and(is_in_use)
}
