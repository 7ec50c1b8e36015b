//! Where sessions are kept on this machine.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{progress, terminal::Terminal};
use anyhow::{Context, anyhow};
use etcetera::BaseStrategy;
use mainstem::{Harness, journal::SqliteJournal};

/// Opens the user's journal, or the one in that file.
///
/// # Errors
/// There is no place for it, or it can't be opened.
pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<SqliteJournal> {
    let path = path.map_or_else(default_path, |path| Ok(path.to_owned()))?;
    let open = || {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        anyhow::Ok(SqliteJournal::open(&path)?)
    };
    open().with_context(|| format!("the journal {}", path.display()))
}

/// The files of a journal: itself, what SQLite keeps beside it, and the locks of its sessions.
pub(crate) fn files(journal: &Path) -> impl Iterator<Item = PathBuf> {
    ["", "-wal", "-shm", "-journal", ".locks"].into_iter().map(|end| {
        let mut name = journal.as_os_str().to_owned();
        name.push(end);
        std::path::absolute(&name).unwrap_or_else(|_| name.into())
    })
}

/// Waits until everything that a harness has recorded is kept, and says so if it can't be.
pub(crate) async fn close(harness: &Harness, terminal: Terminal) {
    if let Some(journal) = harness.journal()
        && let Err(error) = journal.close().await
    {
        progress::say(&format!("warning: the end of a session may not be kept: {error}"), terminal);
    }
}

fn default_path() -> anyhow::Result<PathBuf> {
    let dirs = etcetera::choose_base_strategy()
        .map_err(|error| anyhow!("there is no place for sessions: {error}; --journal names one"))?;
    Ok(dirs.data_dir().join("mainstem").join("journal.db"))
}
