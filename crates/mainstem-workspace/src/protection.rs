//! Protects files of the workspace from agents: those that the next run, git or the task store
//! uses.

mod names;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use self::names::{Protected, protected};
use self::names::{linked, names};
#[cfg(unix)]
use mainstem_guard::Closed;

use crate::{WorkspaceError, error::Written};

/// The files that agents may not write in their workspace, and the calls that are exempt.
///
/// By default file tools refuse to write `mainstem.toml` and anything in `.git`, in any directory,
/// and, in the workspace itself and that of a tenant, `subagents/`, `skills/`, the directories in
/// which other products store agents, and the records and locks of background tasks.
///
/// The spelling of the path does not matter, and links are resolved. For commands, existing files
/// of these are read-only where the system provides namespaces; files that a command creates there
/// are moved aside after it has ended, except records of tasks.
///
/// ```
/// use mainstem_workspace::{Protection, Workspace};
///
/// # let dir = tempfile::tempdir()?;
/// # let dir = dir.path();
/// let protection = Protection::new()
///     .with_path(dir.join("secrets"))
///     .with_exemption(|tool, path| tool == "write_file" && path.starts_with("skills"));
/// let workspace = Workspace::open(dir)?.with_protection(protection);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Protection {
    paths: Vec<PathBuf>,
    allowed: Option<Arc<Allowed>>,
    open: Vec<PathBuf>,
}

type Allowed = dyn Fn(&str, &Path) -> bool + Send + Sync;

impl Protection {
    /// Creates the default protection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Protects this file, or this directory with all below it.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.paths.push(path.into());
        self
    }

    /// Exempts calls of file tools for which `allowed` returns `true`, given the tool's name and
    /// the path from the workspace without links.
    #[must_use]
    pub fn with_exemption(mut self, allowed: impl Fn(&str, &Path) -> bool + Send + Sync + 'static) -> Self {
        self.allowed = Some(Arc::new(allowed));
        self
    }

    /// Lets commands write this path of the workspace, with everything below it.
    #[must_use]
    pub fn with_open(mut self, path: impl Into<PathBuf>) -> Self {
        self.open.push(path.into());
        self
    }
}

/// A protection, and the directory that its paths are relative to.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) root: PathBuf,
    pub(crate) protection: Protection,
}

impl Guard {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), protection: Protection::new() }
    }

    /// Checks that a tool may write a file; `real` is absolute and without links.
    pub(crate) fn check(&self, tool: &str, written: &Written, real: &Path) -> Result<(), WorkspaceError> {
        let inside = real.strip_prefix(&self.root).unwrap_or(real);
        let Some(Protected { what, instead, glob }) = protected(inside).or_else(|| self.listed(inside, real))
        else {
            return Ok(());
        };
        if self.protection.allowed.as_ref().is_some_and(|allowed| allowed(tool, inside)) {
            return Ok(());
        }
        let why = format!("{what}; {instead}, or ask the user to allow \"{tool}(path: {glob})\"");
        Err(WorkspaceError::Unfit { path: written.clone(), why })
    }

    /// Returns the protection of an absolute path: added paths and targets of protected links.
    fn listed(&self, inside: &Path, real: &Path) -> Option<Protected> {
        let real = names(real);
        let is_in = |path: &Path| real.starts_with(&names(&resolved(path)));
        let linked = linked().find(|name| is_in(&self.root.join(name)));
        let linked = linked.and_then(|name| protected(Path::new(name)));
        let is_added = || self.protection.paths.iter().any(|path| is_in(path));
        linked.or_else(|| is_added().then(|| Protected::of_the_user(inside)))
    }
}

#[cfg(unix)]
impl Guard {
    /// Returns what is closed to commands in a directory (absolute and without links), and whether
    /// all of it is closed.
    pub(crate) fn closed(&self, directory: &Path) -> (Closed, bool) {
        let inside = directory.strip_prefix(&self.root).unwrap_or_else(|_| Path::new(""));
        let open = &self.protection.open;
        let mut closed = Closed::default();
        if open.iter().any(|open| inside.starts_with(open)) {
            return (closed, false);
        }
        closed.open =
            open.iter().filter_map(|open| Some(open.strip_prefix(inside).ok()?.to_owned())).collect();
        closed.names = names::anywhere().map(str::to_owned).collect();
        (closed.reserved, closed.existing) = names::below(inside);
        let added = self.protection.paths.iter().map(|path| resolved(path));
        let linked = linked().map(|name| resolved(&self.root.join(name)));
        let here = |path: PathBuf| Some(path.strip_prefix(directory).ok()?.to_owned());
        closed.existing.extend(added.chain(linked).filter_map(here).filter(|path| *path != Path::new("")));
        (closed, protected(inside).is_some() || self.listed(inside, directory).is_some())
    }
}

/// Returns a path without links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(path), ..) => path,
        (Err(_), Some(parent), Some(name)) => resolved(parent).join(name),
        _ => path.to_owned(),
    }
}

impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protection").field("paths", &self.paths).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
