//! What file tools do not write although it is in the workspace: what the next run, git or the task store obeys.

mod names;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use self::names::{LINKED, names};
pub(crate) use self::names::{Protected, protected};
use crate::{WorkspaceError, error::Written};

/// What agents may not write in their workspace, and the calls that may all the same.
///
/// Without being told, file tools do not write `mainstem.toml` and anything in `.git`, in whatever directory; nor, in the workspace itself and in that of a tenant,
/// `subagents/`, `skills/`, the directories in which other products keep agents, and the records and locks of background tasks. It makes no difference how the path is
/// spelled, or whether a link leads there.
///
/// ```
/// use mainstem_workspace::{Protection, Workspace};
///
/// # let dir = tempfile::tempdir()?;
/// # let dir = dir.path();
/// let protection = Protection::new().with_path(dir.join("secrets")).unless(|tool, path| tool == "write_file" && path.starts_with("skills"));
/// let workspace = Workspace::open(dir)?.with_protection(protection);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Protection {
    paths: Vec<PathBuf>,
    allowed: Option<Arc<Allowed>>,
}

type Allowed = dyn Fn(&str, &Path) -> bool + Send + Sync;

impl Protection {
    /// What is protected without being told.
    pub fn new() -> Self {
        Self::default()
    }

    /// Protects this file, or this directory with all below it.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.paths.push(path.into());
        self
    }

    /// Lets calls pass for which this is true of the tool's name and the path from the workspace, links resolved.
    #[must_use]
    pub fn unless(mut self, allowed: impl Fn(&str, &Path) -> bool + Send + Sync + 'static) -> Self {
        self.allowed = Some(Arc::new(allowed));
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

    /// Whether a tool may write a file; `real` is absolute and without links.
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

    /// What is protected by its place on this machine: what was added, and what links of the protected names lead to.
    fn listed(&self, inside: &Path, real: &Path) -> Option<Protected> {
        let real = names(real);
        let is_in = |path: &Path| real.starts_with(&names(&resolved(path)));
        let linked = LINKED.iter().find(|name| is_in(&self.root.join(name)));
        let linked = linked.and_then(|name| protected(Path::new(name)));
        let is_added = || self.protection.paths.iter().any(|path| is_in(path));
        linked.or_else(|| is_added().then(|| Protected::of_the_user(inside)))
    }
}

/// A path without links, as far as it exists.
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
