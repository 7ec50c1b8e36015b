//! The journal of this machine's sessions, or of those that several nodes share.

mod database;

use std::{
    fs,
    future::pending,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, anyhow, ensure};
use etcetera::BaseStrategy;
use futures_util::{FutureExt, future::BoxFuture};
use mainstem::{
    Harness,
    journal::{Journal, SqliteJournal},
    task::TaskStore,
};

pub(crate) use self::database::{Looked, NodeRow, drain, look, migrate, nodes};
use crate::{args::JournalAt, progress, terminal::Terminal};

/// An open journal.
pub(crate) struct Store {
    pub(crate) journal: Arc<dyn Journal>,
    /// The background tasks, if they are beside the sessions and not in the workspace.
    pub(crate) tasks: Option<Arc<dyn TaskStore>>,
    /// The files of the journal, which agents must not change.
    pub(crate) files: Vec<PathBuf>,
    /// Resolves when an operator asks this node of a database to stop.
    pub(crate) asked_to_stop: BoxFuture<'static, ()>,
}

/// What a command does with a journal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It reads; in a database it is not a node.
    Read,
    /// It changes what there is.
    Change,
    /// It creates a journal that does not exist.
    Create,
}

/// Opens the user's journal, or another one.
///
/// # Errors
/// Those of [`open`]; or it does not exist, and is not to be created.
pub(crate) fn open_for(access: Access, at: Option<&JournalAt>) -> anyhow::Result<Store> {
    match (access, at) {
        (Access::Read, Some(JournalAt::Database(url))) => database::read(url),
        // Such as on a full disk, where SQLite has no room for its files.
        (Access::Read, _) => open_existing(at).or_else(|error| open_to_read(at).map_err(|_| error)),
        (Access::Change, _) => open_existing(at),
        (Access::Create, _) => open(at),
    }
}

/// Opens a file that is not changed.
fn open_to_read(at: Option<&JournalAt>) -> anyhow::Result<Store> {
    let path = match at {
        Some(JournalAt::File(path)) => path.clone(),
        _ => default_path()?,
    };
    Ok(of_file(SqliteJournal::open_to_read(path)?))
}

/// Opens the user's journal, or an existing one, which is only read if it can't be written.
///
/// # Errors
/// Those of [`open`], or the named file does not exist.
pub(crate) fn open_existing(at: Option<&JournalAt>) -> anyhow::Result<Store> {
    if let Some(JournalAt::File(path)) = at {
        ensure!(path.exists(), "there is no journal {}", path.display());
        if !is_writable(path) {
            let journal = SqliteJournal::open_to_read(path);
            return Ok(of_file(journal.with_context(|| format!("the journal {}", path.display()))?));
        }
    }
    open(at)
}

/// Returns `true` if this process may write a file, and others beside it as SQLite does.
#[cfg(unix)]
fn is_writable(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    [path, directory.unwrap_or_else(|| Path::new("."))]
        .iter()
        .all(|place| access(*place, Access::WRITE_OK).is_ok())
}

#[cfg(not(unix))]
fn is_writable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| !about.permissions().readonly())
}

/// Opens the user's journal, or another, and creates it if it does not exist.
///
/// # Errors
/// The system has no data directory, or the journal can't be opened.
pub(crate) fn open(at: Option<&JournalAt>) -> anyhow::Result<Store> {
    match at {
        Some(JournalAt::Database(url)) => database::join(url),
        Some(JournalAt::File(path)) => {
            ensure_folder(path).with_context(|| format!("the journal {}", path.display()))?;
            open_file(path)
        }
        None => {
            let path = default_path()?;
            let folder = path.parent().unwrap_or(&path);
            fs::create_dir_all(folder).with_context(|| {
                format!("{} can't be created; set XDG_DATA_HOME, or use --journal FILE", folder.display())
            })?;
            open_file(&path)
        }
    }
}

/// Checks that the folder of a journal exists: one that does not may be mistyped.
fn ensure_folder(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let missing = folder.filter(|folder| !folder.is_dir());
    missing.map_or(Ok(()), |folder| Err(anyhow!("there is no folder {}", folder.display())))
}

fn open_file(path: &Path) -> anyhow::Result<Store> {
    let open = || anyhow::Ok(of_file(SqliteJournal::open(path)?));
    open().with_context(|| format!("the journal {}", path.display()))
}

fn of_file(journal: SqliteJournal) -> Store {
    let files = files(journal.path()).collect();
    Store { files, tasks: None, journal: Arc::new(journal), asked_to_stop: pending().boxed() }
}

/// Returns the files of a journal: itself, SQLite's files beside it, and the locks of its sessions.
fn files(journal: &Path) -> impl Iterator<Item = PathBuf> {
    ["", "-wal", "-shm", "-journal", ".locks"].into_iter().map(|end| {
        let mut name = journal.as_os_str().to_owned();
        name.push(end);
        std::path::absolute(&name).unwrap_or_else(|_| name.into())
    })
}

/// Waits until the events of a harness are recorded; prints a warning if they can't be.
pub(crate) async fn close(harness: &Harness, terminal: Terminal) {
    if let Some(journal) = harness.journal()
        && let Err(error) = journal.close().await
    {
        progress::say(
            &format!("warning: the last events of a session may not be recorded: {error}"),
            terminal,
        );
    }
}

/// Returns the file with the lines that were entered in chats; `None` without a data directory.
pub(crate) fn history() -> Option<PathBuf> {
    let directory = default_path().ok()?.parent()?.to_owned();
    fs::create_dir_all(&directory).ok()?;
    Some(directory.join("history.txt"))
}

/// Returns the journal of the user.
///
/// # Errors
/// The system has no data directory.
pub(crate) fn default_path() -> anyhow::Result<PathBuf> {
    let dirs = etcetera::choose_base_strategy().map_err(|error| {
        anyhow!("there is no data directory for sessions: {error}; --journal names a file")
    })?;
    Ok(dirs.data_dir().join("mainstem").join("journal.db"))
}
