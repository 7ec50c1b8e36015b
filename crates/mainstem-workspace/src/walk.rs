//! Walks through a workspace by its capability: in order, without following symbolic links or
//! entering what `.gitignore` excludes.

mod ignores;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use cap_std::fs::FileType;

use self::ignores::Ignores;
use crate::{
    Workspace, WorkspaceError, blocking::Stop, error::Written, path::Inside, text::shown, workspace::explain,
};

/// The maximum depth: further down, paths have the length that systems refuse.
pub(crate) const DEEPEST: usize = 256;

/// The maximum number of entries of a directory, which are sorted in memory.
const WIDEST: usize = 100_000;

/// Yields the entries below a directory: each directory, then its entries, by name. An entry that
/// can't be read is an error among them.
pub(crate) struct Walk<'a> {
    workspace: &'a Workspace,
    stop: &'a Stop,
    /// The maximum depth.
    depth: usize,
    ignores: bool,
    waiting: Vec<(Entry, Option<Arc<Ignores>>)>,
    failed: Vec<WorkspaceError>,
}

/// An entry below the workspace's root.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Relative to the root.
    pub(crate) path: PathBuf,
    /// The number of directories below the start of the walk, from 1.
    pub(crate) depth: usize,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Directory,
    File,
    Link,
    Special,
}

impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        match kind {
            kind if kind.is_dir() => Self::Directory,
            kind if kind.is_file() => Self::File,
            kind if kind.is_symlink() => Self::Link,
            _ => Self::Special,
        }
    }
}

impl<'a> Walk<'a> {
    /// Creates a walk below `start`, which has no links in it, as deep as `depth`.
    pub(crate) fn all(workspace: &'a Workspace, stop: &'a Stop, start: Inside, depth: usize) -> Self {
        Self::new(workspace, stop, start, depth, false)
    }

    /// Creates a walk that skips what ignore files exclude.
    pub(crate) fn unignored(workspace: &'a Workspace, stop: &'a Stop, start: Inside) -> Self {
        Self::new(workspace, stop, start, DEEPEST, true)
    }

    fn new(workspace: &'a Workspace, stop: &'a Stop, start: Inside, depth: usize, ignores: bool) -> Self {
        let path = if start.relative == Path::new(".") { PathBuf::new() } else { start.relative };
        let above = if ignores { Ignores::above(workspace, &path) } else { None };
        let start = Entry { path, depth: 0, kind: Kind::Directory };
        let depth = depth.min(DEEPEST);
        Self { workspace, stop, depth, ignores, waiting: vec![(start, above)], failed: Vec::new() }
    }

    fn enter(&mut self, entry: &Entry, above: Option<Arc<Ignores>>) {
        let written = Written::new(shown(or_dot(&entry.path)));
        let found = match self.names(entry) {
            Ok(found) => found,
            Err(error) => return self.failed.push(explain(&written, error)),
        };
        if found.len() > WIDEST {
            let why = format!("has more than {WIDEST} entries, of which the rest was passed over");
            self.failed.push(WorkspaceError::Unfit { path: written, why });
        }
        let ignores = if self.ignores { Ignores::of(self.workspace, &entry.path, above) } else { None };
        let mut found: Vec<_> = found
            .into_iter()
            .take(WIDEST)
            .map(|(name, kind)| Entry { path: entry.path.join(name), depth: entry.depth + 1, kind })
            .filter(|entry| !ignores.as_ref().is_some_and(|ignores| ignores.excludes(entry)))
            .collect();
        found.sort_unstable_by(|one, other| other.path.cmp(&one.path));
        self.waiting.extend(found.into_iter().map(|entry| (entry, ignores.clone())));
    }

    /// Returns the names, at most one more than [`WIDEST`]. `.git` is hidden: it is large, and of
    /// no use to the model.
    fn names(&self, entry: &Entry) -> std::io::Result<Vec<(OsString, Kind)>> {
        let entries = self.workspace.dir().read_dir(or_dot(&entry.path))?;
        entries
            .map(|entry| {
                let entry = entry?;
                // An entry that was removed meanwhile has no type.
                let kind = entry.file_type().map_or(Kind::Special, Kind::from);
                Ok((entry.file_name(), kind))
            })
            .filter(|entry| !entry.as_ref().is_ok_and(|(name, _)| name == ".git"))
            .take(WIDEST + 1)
            .collect()
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Entry, WorkspaceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(error) = self.failed.pop() {
                return Some(Err(error));
            }
            let (entry, above) = self.waiting.pop()?;
            if let Err(error) = self.stop.check() {
                self.waiting.clear();
                return Some(Err(error));
            }
            if entry.kind == Kind::Directory && entry.depth < self.depth {
                self.enter(&entry, above);
            }
            if entry.depth > 0 {
                return Some(Ok(entry));
            }
        }
    }
}

/// Returns `.` for the root, whose path is empty.
fn or_dot(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Errors of a walk, as notes below the result; a few in full.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    notes: Vec<String>,
    more: usize,
}

impl Failures {
    /// Adds an error, unless it ends the walk.
    pub(crate) fn add(&mut self, error: WorkspaceError) -> Result<(), WorkspaceError> {
        if matches!(error, WorkspaceError::Cancelled) {
            return Err(error);
        }
        if self.notes.len() < 3 {
            self.notes.push(error.to_string())
        } else {
            self.more += 1
        }
        Ok(())
    }

    pub(crate) fn into_notes(mut self) -> Vec<String> {
        if self.more > 0 {
            self.notes.push(format!("and {} more that could not be read", self.more));
        }
        self.notes
    }
}

#[cfg(test)]
mod tests;
