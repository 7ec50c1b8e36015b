//! A PostgreSQL database of several nodes.

use anyhow::bail;
#[cfg(feature = "postgres")]
use {
    super::Store,
    crate::config::{read::named, var},
    anyhow::Context,
    mainstem_postgres::{Node, Settings},
    std::{path::Path, sync::Arc},
};

use crate::args::JournalAt;

/// The environment variable with the password.
#[cfg(feature = "postgres")]
const PASSWORD: &str = "PGPASSWORD";

/// The environment variable that names a file with the password, as secrets are mounted.
#[cfg(feature = "postgres")]
const PASSWORD_FILE: &str = "PGPASSWORD_FILE";

/// The longest file of a password, in bytes.
#[cfg(feature = "postgres")]
const LONGEST: u64 = 4096;

/// Joins the nodes of a database.
#[cfg(feature = "postgres")]
pub(super) fn join(url: &str) -> anyhow::Result<Store> {
    let node = Node::join_blocking(settings(url)?)?;
    Ok(Store { journal: Arc::new(node.journal()), tasks: Some(Arc::new(node.tasks())), files: Vec::new() })
}

/// Creates the tables of a database, or changes those of an earlier version. Returns what was done,
/// for people.
///
/// # Errors
/// The journal is a file, or its database can't be reached or changed.
pub(crate) fn migrate(at: &JournalAt) -> anyhow::Result<String> {
    match at {
        JournalAt::File(path) => bail!(
            "--journal {}: a file needs no migration; a database is named as postgres://user@host/name",
            path.display()
        ),
        JournalAt::Database(url) => migrate_database(url),
    }
}

#[cfg(feature = "postgres")]
fn migrate_database(url: &str) -> anyhow::Result<String> {
    let settings = settings(url)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(mainstem_postgres::migrate(&settings))?;
    let place = settings.place();
    Ok(match done.from {
        None => format!("{place}: the tables are created, in version {}", done.to),
        Some(from) if from == done.to => format!("{place}: the tables have version {from} already"),
        Some(from) => format!("{place}: the tables are changed from version {from} to {}", done.to),
    })
}

#[cfg(feature = "postgres")]
fn settings(url: &str) -> anyhow::Result<Settings> {
    let settings = Settings::parse(url).context("--journal")?;
    if let Some(password) = var(PASSWORD) {
        return Ok(settings.with_password(&password));
    }
    let Some(file) = var(PASSWORD_FILE) else { return Ok(settings) };
    let password = named(Path::new(&file), LONGEST).with_context(|| format!("{PASSWORD_FILE}={file}"))?;
    Ok(settings.with_password(password.trim_end_matches(['\r', '\n'])))
}

#[cfg(not(feature = "postgres"))]
const MISSING: &str =
    "--journal postgres://…: this build has no PostgreSQL; build it with the feature `postgres`";

#[cfg(not(feature = "postgres"))]
pub(super) fn join(_: &str) -> anyhow::Result<super::Store> {
    bail!(MISSING)
}

#[cfg(not(feature = "postgres"))]
fn migrate_database(_: &str) -> anyhow::Result<String> {
    bail!(MISSING)
}
