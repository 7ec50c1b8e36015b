//! The parts of folders' files that the user trusts.

mod part;
mod store;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::Context;
use mainstem::policy::Part;

pub(crate) use self::{
    part::{FolderPart, listed, remedy},
    store::{Folder, Folders, Store},
};

/// Trusted parts: recorded ones, and those of this command.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Trusted {
    now: BTreeSet<(PathBuf, String)>,
    store: Option<Store>,
}

impl Trusted {
    /// The parts that the store has; it may be missing.
    pub(crate) fn recorded(store: Option<Store>) -> Self {
        Self { store, ..Self::default() }
    }

    /// Returns `true` if a part of the files in this folder is trusted.
    pub(crate) fn has(&self, folder: &Path, part: &Part) -> bool {
        let (folder, hash) = (canonical(folder), part.hash());
        let recorded = || self.store.as_ref().is_some_and(|store| store.has(&folder, &hash));
        self.now.contains(&(folder.clone(), hash.clone())) || recorded()
    }

    /// Trusts parts for this command.
    pub(crate) fn add(&mut self, parts: &[FolderPart]) {
        self.now.extend(parts.iter().map(|found| (found.folder.clone(), found.part.hash())));
    }

    /// Records parts in the store.
    ///
    /// # Errors
    /// The user has no store, or it can't be written.
    pub(crate) fn record(&self, parts: &[FolderPart]) -> anyhow::Result<()> {
        self.store.as_ref().context("there is no directory for the user's state")?.add(parts)
    }
}

/// Returns the folder's absolute path without links; a missing folder as it is.
pub(crate) fn canonical(folder: &Path) -> PathBuf {
    folder.canonicalize().or_else(|_| std::path::absolute(folder)).unwrap_or_else(|_| folder.to_owned())
}
