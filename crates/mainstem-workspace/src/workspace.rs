//! A directory that tools can't leave.

mod target;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use cap_std::{
    ambient_authority,
    fs::{Dir, FileType, OpenOptions},
};
use mainstem_tool::Tool;

pub(crate) use self::target::Target;
use crate::{
    WorkspaceError, Workspaces,
    error::Written,
    path::Inside,
    protection::{Guard, Protection},
};

/// A directory that tools work in and can't leave. Cheap to clone.
///
/// Every path is resolved below an open directory handle (a capability, see `cap-std`), by the
/// system and at the moment of use: `..`, absolute paths and symbolic links work while they stay
/// inside and are refused where they lead out, also while other processes move files. A link with
/// an absolute target counts as leading out. Only regular files and directories are opened.
///
/// A hard link to a file outside, and a file system mounted inside, belong to the workspace: a
/// process that can create them can write there anyway.
///
/// ```
/// use mainstem_workspace::Workspace;
///
/// let workspace = Workspace::open(".")?;
/// let names: Vec<_> = workspace.tools().iter().map(|tool| tool.spec().name).collect();
/// assert!(names.contains(&"read_file".to_owned()));
/// # Ok::<(), mainstem_workspace::WorkspaceError>(())
/// ```
#[derive(Clone)]
pub struct Workspace {
    inner: Arc<Inner>,
    guard: Arc<Guard>,
}

struct Inner {
    dir: Dir,
    /// The root without links.
    root: PathBuf,
    /// The root as it was given, made absolute.
    alias: PathBuf,
}

impl Workspace {
    /// Opens the workspace in an existing directory. Blocks on the file system.
    ///
    /// # Errors
    /// If it is not a directory that can be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WorkspaceError> {
        let path = path.as_ref();
        let open = || {
            let root = path.canonicalize()?;
            let dir = Dir::open_ambient_dir(&root, ambient_authority())?;
            let (alias, guard) = (std::path::absolute(path)?, Arc::new(Guard::new(&root)));
            Ok(Self { inner: Arc::new(Inner { dir, root, alias }), guard })
        };
        open().map_err(|source| WorkspaceError::Root { path: path.to_owned(), source })
    }

    /// Opens the workspace in a directory, and creates that if it is missing.
    ///
    /// # Errors
    /// If it can't be created or opened.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, WorkspaceError> {
        let path = path.as_ref();
        fs::create_dir_all(path)
            .map_err(|source| WorkspaceError::Root { path: path.to_owned(), source })
            .and_then(|()| Self::open(path))
    }

    /// Opens a workspace in a directory of this one, and creates that if it is missing. Agents of
    /// this workspace can't make it lead out. Blocks on the file system.
    ///
    /// # Errors
    /// If the path leads out, or the directory can't be created or opened.
    pub fn create_inside(&self, path: impl AsRef<Path>) -> Result<Self, WorkspaceError> {
        let path = path.as_ref();
        let create = || {
            self.inner.dir.create_dir_all(path)?;
            let root = self.inner.root.join(self.inner.dir.canonicalize(path)?);
            let inner = Inner { dir: self.inner.dir.open_dir(path)?, alias: root.clone(), root };
            Ok(Self { inner: Arc::new(inner), guard: self.guard.clone() })
        };
        create().map_err(|source| WorkspaceError::Root { path: self.inner.root.join(path), source })
    }

    /// Sets the protection. Workspaces that are created inside this one share it.
    #[must_use]
    pub fn with_protection(self, protection: Protection) -> Self {
        let guard = Guard { root: self.guard.root.clone(), protection };
        Self { guard: Arc::new(guard), ..self }
    }

    /// Applies the protection of `other`: its paths if this workspace is a directory in `other`, or
    /// else the same rules for its own paths.
    #[must_use]
    pub fn protected_as(self, other: &Self) -> Self {
        if self.inner.root.starts_with(&other.guard.root) {
            return Self { guard: other.guard.clone(), ..self };
        }
        self.with_protection(other.guard.protection.clone())
    }

    /// Checks that a tool may write a file, by its path from here without links.
    pub(crate) fn check_write(&self, tool: &str, path: &Inside, real: &Path) -> Result<(), WorkspaceError> {
        self.guard.check(tool, &path.written, &self.inner.root.join(real))
    }

    /// Returns a path of this directory as rules name it: from the workspace that contains it.
    #[cfg(unix)]
    pub(crate) fn named(&self, path: &str) -> PathBuf {
        self.inner.root.strip_prefix(&self.guard.root).unwrap_or_else(|_| Path::new("")).join(path)
    }

    /// Returns what is closed to commands in this workspace, and whether all of it is closed.
    #[cfg(unix)]
    pub(crate) fn closed(&self) -> (mainstem_guard::Closed, bool) {
        self.guard.closed(&self.inner.root)
    }

    /// Returns the directory, absolute and without links.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// Returns the six file tools of this workspace: `read_file`, `list_files`, `glob_files` and
    /// `grep_files`, which are read-only, `write_file` and `edit_file`.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Workspaces::from(self.clone()).tools()
    }

    /// Returns the tool `shell` of this workspace; it is not one of [`tools`](Self::tools), because
    /// it runs programs. See [`Workspaces::shell`].
    #[cfg(unix)]
    pub fn shell(&self) -> Arc<dyn Tool> {
        Workspaces::from(self.clone()).shell()
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.inner.dir
    }

    /// Returns a path by which a child process enters the directory: on Linux through the handle,
    /// so that it is this directory even if its name leads elsewhere by now; on other systems by
    /// the name.
    #[cfg(unix)]
    pub(crate) fn handle_path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        if cfg!(target_os = "linux") {
            format!("/proc/self/fd/{}", self.inner.dir.as_raw_fd()).into()
        } else {
            self.inner.root.clone()
        }
    }

    /// Parses a path of a model.
    pub(crate) fn path(&self, path: &str) -> Result<Inside, WorkspaceError> {
        Inside::new(path, &[&self.inner.root, &self.inner.alias])
    }

    /// Parses the path of a directory, without links; `None` is the root.
    pub(crate) fn directory(&self, path: Option<&str>) -> Result<Inside, WorkspaceError> {
        let Some(path) = path else { return Ok(Inside::root()) };
        let path = self.path(path)?;
        let explain = |error| explain(&path.written, error);
        if !self.inner.dir.metadata(&path.relative).map_err(explain)?.is_dir() {
            return Err(WorkspaceError::NotDirectory { path: path.written });
        }
        let relative = self.inner.dir.canonicalize(&path.relative).map_err(explain)?;
        Ok(Inside { relative, ..path })
    }

    /// Opens a regular file to read it.
    pub(crate) fn open_file(&self, path: &Inside) -> Result<fs::File, WorkspaceError> {
        let explain = |error| explain(&path.written, error);
        // Opening a device can have effects, so its type is checked first, and that of the opened
        // file afterwards, because it may have been exchanged.
        regular(path, self.inner.dir.metadata(&path.relative).map_err(explain)?.file_type())?;
        let file = self.inner.dir.open_with(&path.relative, &read_only()).map_err(explain)?;
        regular(path, file.metadata().map_err(explain)?.file_type())?;
        Ok(file.into_std())
    }
}

/// Returns options that do not block on a pipe.
pub(crate) fn read_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        use rustix::fs::OFlags;
        options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    }
    options
}

fn regular(path: &Inside, kind: FileType) -> Result<(), WorkspaceError> {
    if kind.is_file() {
        return Ok(());
    }
    let path = path.written.clone();
    if kind.is_dir() {
        return Err(WorkspaceError::IsDirectory { path });
    }
    Err(WorkspaceError::Special { path, kind: special(kind) })
}

#[cfg(unix)]
fn special(kind: FileType) -> &'static str {
    use cap_std::fs::FileTypeExt;
    match kind {
        kind if kind.is_fifo() => "named pipe",
        kind if kind.is_socket() => "socket",
        kind if kind.is_char_device() || kind.is_block_device() => "device",
        _ => "special file",
    }
}

#[cfg(not(unix))]
fn special(_: FileType) -> &'static str {
    "special file"
}

/// Converts an error of the system or the capability, for the model.
pub(crate) fn explain(path: &Written, error: std::io::Error) -> WorkspaceError {
    use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound, PermissionDenied};
    let path = path.clone();
    match error.kind() {
        // A refusal of cap-std has no error number.
        PermissionDenied if error.raw_os_error().is_none() => WorkspaceError::Outside { path },
        NotFound => WorkspaceError::NotFound { path },
        IsADirectory => WorkspaceError::IsDirectory { path },
        NotADirectory => {
            WorkspaceError::BadPath { path, why: "goes on after a file as if that were a directory" }
        }
        _ => WorkspaceError::Io { path, source: error },
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Workspace").field(&self.inner.root).finish()
    }
}

#[cfg(test)]
mod tests;
