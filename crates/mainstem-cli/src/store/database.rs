//! A PostgreSQL database of several nodes.

use anyhow::bail;
#[cfg(feature = "postgres")]
use {
    super::Store,
    crate::config::{read::named, var},
    anyhow::Context,
    futures_util::FutureExt,
    mainstem_postgres::{Error, Node, Settings},
    std::{path::Path, sync::Arc},
};

#[cfg(feature = "postgres")]
pub(crate) use mainstem_postgres::NodeView as NodeRow;

#[cfg(not(feature = "postgres"))]
pub(crate) use self::missing::{NodeRow, drain, join, look, migrate, nodes, read};
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

/// Returns the URL of a database.
///
/// # Errors
/// The journal is a file.
fn url(at: &JournalAt) -> anyhow::Result<&str> {
    match at {
        JournalAt::Database(url) => Ok(url),
        JournalAt::File(path) => bail!(
            "--journal {}: a file has no nodes and needs no migration; a database is named as \
             postgres://user@host/name",
            path.display()
        ),
    }
}

/// Joins the nodes of a database.
#[cfg(feature = "postgres")]
pub(super) fn join(url: &str) -> anyhow::Result<Store> {
    Ok(store(Node::join_blocking(settings(url)?)?))
}

/// Opens a database to read it, without joining its nodes.
#[cfg(feature = "postgres")]
pub(super) fn read(url: &str) -> anyhow::Result<Store> {
    Ok(store(Node::read_blocking(settings(url)?)?))
}

#[cfg(feature = "postgres")]
fn store(node: Node) -> Store {
    let (journal, tasks) = (Arc::new(node.journal()), Arc::new(node.tasks()));
    let asked_to_stop = async move { node.asked_to_stop().await }.boxed();
    Store { journal, tasks: Some(tasks), files: Vec::new(), asked_to_stop }
}

/// Creates the tables of a database, or changes those of an earlier version. Returns what was done,
/// for people.
///
/// # Errors
/// The journal is a file, or its database can't be reached or changed.
#[cfg(feature = "postgres")]
pub(crate) fn migrate(at: &JournalAt) -> anyhow::Result<String> {
    let settings = settings(url(at)?)?;
    let done = wait(mainstem_postgres::migrate(&settings))?;
    let place = settings.place();
    Ok(match done.from {
        None => format!("{place}: the tables are created, in version {}", done.to),
        Some(from) if from == done.to => format!("{place}: the tables have version {from} already"),
        Some(from) => format!("{place}: the tables are changed from version {from} to {}", done.to),
    })
}

/// Returns the nodes of a database.
///
/// # Errors
/// The journal is a file, or its database can't be reached or read.
#[cfg(feature = "postgres")]
pub(crate) fn nodes(at: &JournalAt) -> anyhow::Result<Vec<NodeRow>> {
    wait(mainstem_postgres::nodes(&settings(url(at)?)?))
}

/// What `doctor` says of a database.
pub(crate) struct Looked {
    /// The database, without its password.
    pub(crate) place: String,
    /// How many nodes are alive.
    pub(crate) alive: usize,
    /// Whether its role may serve, or only read.
    pub(crate) may_serve: bool,
}

/// Looks at a database as a node would that joins it, without joining.
///
/// # Errors
/// It can't be reached or read, or has no tables that this program works with.
#[cfg(feature = "postgres")]
pub(crate) fn look(url: &str) -> anyhow::Result<Looked> {
    let settings = settings(url)?;
    let may_serve = wait(mainstem_postgres::may_serve(&settings))?;
    let nodes = wait(mainstem_postgres::nodes(&settings))?;
    let place = settings.place().to_owned();
    Ok(Looked { place, alive: nodes.iter().filter(|node| node.lease.is_some()).count(), may_serve })
}

/// Asks the nodes of a name or number to stop; returns how many there are.
///
/// # Errors
/// The journal is a file, or its database can't be reached or written.
#[cfg(feature = "postgres")]
pub(crate) fn drain(at: &JournalAt, name: &str) -> anyhow::Result<u64> {
    wait(mainstem_postgres::drain(&settings(url(at)?)?, name))
}

#[cfg(feature = "postgres")]
fn wait<T>(request: impl Future<Output = Result<T, Error>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(request)?)
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

/// The same in a build without PostgreSQL.
#[cfg(not(feature = "postgres"))]
mod missing {
    use std::time::Duration;

    use anyhow::bail;

    use super::{JournalAt, Looked, url};
    use crate::store::Store;

    const MISSING: &str =
        "--journal postgres://…: this build has no PostgreSQL; build it with the feature `postgres`";

    pub(crate) struct NodeRow {
        pub(crate) no: i64,
        pub(crate) name: String,
        pub(crate) program: String,
        pub(crate) joined: Duration,
        pub(crate) lease: Option<Duration>,
        pub(crate) is_draining: bool,
        pub(crate) sessions: u64,
        pub(crate) runs: u64,
    }

    pub(crate) fn join(_: &str) -> anyhow::Result<Store> {
        bail!(MISSING)
    }

    pub(crate) fn look(_: &str) -> anyhow::Result<Looked> {
        bail!(MISSING)
    }

    pub(crate) fn read(_: &str) -> anyhow::Result<Store> {
        bail!(MISSING)
    }

    pub(crate) fn migrate(at: &JournalAt) -> anyhow::Result<String> {
        url(at).and_then(|_| bail!(MISSING))
    }

    pub(crate) fn nodes(at: &JournalAt) -> anyhow::Result<Vec<NodeRow>> {
        url(at).and_then(|_| bail!(MISSING))
    }

    pub(crate) fn drain(at: &JournalAt, _: &str) -> anyhow::Result<u64> {
        url(at).and_then(|_| bail!(MISSING))
    }
}
