//! The store of trusted parts, a file of the user.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use etcetera::BaseStrategy;
use mainstem::policy::Pattern;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::FolderPart;
use crate::config::read;

/// The largest store in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// `mainstem/trust.json` in the user's state directory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Store {
    path: PathBuf,
}

/// Folders by name; the address of a server, too, for what is allowed there.
pub(crate) type Folders = BTreeMap<String, Folder>;

/// What the user has agreed to in a folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Folder {
    /// The hashes of trusted parts of its files, and what these do.
    pub(crate) trusted: BTreeMap<String, String>,
    /// The calls that are always allowed.
    pub(crate) allowed: Vec<Pattern>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    folders: Folders,
}

impl Store {
    /// Returns the user's store; `None` if the system has no state directory.
    pub(crate) fn of_user() -> Option<Self> {
        let dirs = etcetera::choose_base_strategy().ok()?;
        let state = dirs.state_dir().unwrap_or_else(|| dirs.data_dir());
        Some(Self { path: state.join("mainstem").join("trust.json") })
    }

    /// Returns `true` if this is recorded. An unreadable store counts as empty.
    pub(crate) fn has(&self, folder: &Path, hash: &str) -> bool {
        let known = || Some(self.read().ok()?.get(folder.to_str()?)?.trusted.contains_key(hash));
        known().unwrap_or_default()
    }

    /// # Errors
    /// It can't be read.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.read().map(drop)
    }

    /// # Errors
    /// It can't be read.
    pub(crate) fn read(&self) -> anyhow::Result<Folders> {
        let text = read::text(&self.path, MAX_BYTES)?;
        let contents = text.map(|text| serde_json::from_str::<Contents>(&text)).transpose();
        let contents = contents.with_context(|| format!("{}: correct or remove it", self.path.display()))?;
        Ok(contents.unwrap_or_default().folders)
    }

    /// Records these.
    ///
    /// # Errors
    /// It can't be written, or the name of a folder is not text.
    pub(crate) fn add(&self, parts: &[FolderPart]) -> anyhow::Result<()> {
        self.change(|folders| {
            for FolderPart { folder, part, .. } in parts {
                let name = folder.to_str().context("the folder's name is not UTF-8")?;
                let trusted = &mut folders.entry(name.to_owned()).or_default().trusted;
                trusted.insert(part.hash(), part.to_string());
            }
            Ok(())
        })
    }

    /// Returns the calls that are always allowed in a folder, or at a server.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn allowed(&self, folder: &str) -> anyhow::Result<Vec<Pattern>> {
        Ok(self.read()?.remove(folder).map(|folder| folder.allowed).unwrap_or_default())
    }

    /// Allows calls always.
    ///
    /// # Errors
    /// It can't be read or written.
    pub(crate) fn allow(&self, folder: &str, patterns: Vec<Pattern>) -> anyhow::Result<()> {
        self.change(|folders| {
            let allowed = &mut folders.entry(folder.to_owned()).or_default().allowed;
            let new = patterns.into_iter().filter(|pattern| !allowed.contains(pattern)).collect::<Vec<_>>();
            allowed.extend(new);
            Ok(())
        })
    }

    /// Removes a folder; returns what the user had agreed to there.
    ///
    /// # Errors
    /// It can't be read or written.
    pub(crate) fn remove(&self, folder: &str) -> anyhow::Result<Option<Folder>> {
        self.change(|folders| Ok(folders.remove(folder)))
    }

    /// Changes the store under a lock that also excludes other processes; readers see the old file
    /// or the new one.
    fn change<T>(&self, change: impl FnOnce(&mut Folders) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let dir = self.path.parent().unwrap_or_else(|| Path::new("."));
        let about = || self.path.display().to_string();
        let _lock = lock(dir).with_context(about)?;
        let mut folders = self.read()?;
        let changed = change(&mut folders)?;
        self.write(dir, folders).with_context(about)?;
        Ok(changed)
    }

    fn write(&self, dir: &Path, folders: Folders) -> anyhow::Result<()> {
        // Only the user can read and write it, as is usual for a temporary file.
        let mut file = NamedTempFile::new_in(dir)?;
        serde_json::to_writer_pretty(&mut file, &Contents { folders })?;
        file.flush()?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }
}

/// Takes a lock that also excludes other processes, until it is dropped.
fn lock(dir: &Path) -> io::Result<File> {
    fs::create_dir_all(dir)?;
    let lock = File::options().create(true).truncate(false).write(true).open(dir.join("trust.lock"))?;
    lock.lock()?;
    Ok(lock)
}
