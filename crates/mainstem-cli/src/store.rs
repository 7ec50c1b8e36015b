//! Where sessions are kept on this machine.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use etcetera::BaseStrategy;
use mainstem::journal::SqliteJournal;

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

fn default_path() -> anyhow::Result<PathBuf> {
    let dirs = etcetera::choose_base_strategy()
        .map_err(|error| anyhow!("there is no place for sessions: {error}; --journal names one"))?;
    Ok(dirs.data_dir().join("mainstem").join("journal.db"))
}
