//! Replacing a file, atomically and one writer at a time.

use std::{
    ffi::{OsStr, OsString},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, ErrorKind, Read, Write},
    path::{Component, Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

#[cfg(unix)]
use cap_std::fs::OpenOptions;
use cap_std::fs::{Dir, Permissions};
use cap_tempfile::TempFile;

use super::{Workspace, explain, regular};
use crate::{WorkspaceError, path::Inside};

/// The maximum number of links that are followed.
const MAX_LINKS: usize = 40;

/// A lock for each file, by the hash of its path: two agents that edit one file at once would
/// otherwise lose an edit. They are shared in the process, because the workspaces of two agents may
/// be one directory.
static WRITE_LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// An exclusive handle, within this process, to a regular file being written.
pub(crate) struct Target<'a> {
    workspace: &'a Workspace,
    path: &'a Inside,
    parent: Dir,
    name: OsString,
    /// The permissions of the existing file; `None` if it is new.
    permissions: Option<Permissions>,
    _lock: MutexGuard<'static, ()>,
}

impl<'a> Target<'a> {
    /// Locks the file that a tool writes. Symbolic links are followed; the parent directories of a
    /// new file are created. A protected file is refused.
    pub(crate) fn claim(
        tool: &str,
        workspace: &'a Workspace,
        path: &'a Inside,
    ) -> Result<Self, WorkspaceError> {
        let explain = |error| explain(&path.written, error);
        let dir = workspace.dir();
        let file = resolve(workspace, path)?;
        let (Some(parent), Some(name)) = (file.parent(), file.file_name()) else {
            return Err(WorkspaceError::IsDirectory { path: path.written.clone() });
        };
        let parent = if parent == "" { Path::new(".") } else { parent };
        let check = |parent: &Path| workspace.check_write(tool, path, &parent.join(name));
        check(&resolve_existing(dir, parent).map_err(explain)?)?;
        create_parents(workspace, path, parent)?;
        let parent = dir.canonicalize(parent).map_err(explain)?;
        // Checked again: a component may have been replaced by a link since the first check.
        check(&parent)?;
        let lock = lock(&workspace.root().join(&parent), name);
        let parent = descend(dir, &parent).map_err(explain)?;
        let permissions = match parent.symlink_metadata(name) {
            Ok(metadata) => {
                regular(path, metadata.file_type())?;
                Some(metadata.permissions())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(explain(error)),
        };
        Ok(Self { workspace, path, parent, name: name.to_owned(), permissions, _lock: lock })
    }

    /// Returns `true` if the file does not exist yet.
    pub(crate) fn is_new(&self) -> bool {
        self.permissions.is_none()
    }

    /// Returns the content, if it has at most `max` bytes.
    pub(crate) fn read(&self, max: u64) -> Result<Vec<u8>, WorkspaceError> {
        let mut content = Vec::new();
        let file = self.workspace.open_file(self.path)?;
        file.take(max + 1).read_to_end(&mut content).map_err(|error| explain(&self.path.written, error))?;
        if content.len() as u64 > max {
            let why = format!("is larger than {max} bytes, which is too much to edit");
            return Err(WorkspaceError::Unfit { path: self.path.written.clone(), why });
        }
        Ok(content)
    }

    /// Replaces the file atomically: readers see the old content or the new one. Permissions stay.
    pub(crate) fn replace(self, content: &[u8]) -> Result<(), WorkspaceError> {
        let replace = || {
            let mut file = TempFile::new(&self.parent)?;
            file.write_all(content)?;
            if let Some(permissions) = self.permissions {
                file.as_file().set_permissions(permissions)?;
            }
            file.replace(&self.name)
        };
        replace().map_err(|error| explain(&self.path.written, error))
    }
}

/// Returns the path of the file behind links, followed one by one: `canonicalize` can return a
/// wrong path if the file is replaced meanwhile.
fn resolve(workspace: &Workspace, path: &Inside) -> Result<PathBuf, WorkspaceError> {
    let bad = |why| Err(WorkspaceError::BadPath { path: path.written.clone(), why });
    let explain = |error| explain(&path.written, error);
    let dir = workspace.dir();
    let mut file = path.relative.clone();
    if file.as_os_str().as_encoded_bytes().ends_with(b"/") && !dir.is_dir(&file) {
        return bad("ends in a slash; give the path of a file");
    }
    for links in 0..MAX_LINKS {
        match dir.symlink_metadata(&file) {
            Ok(metadata) if metadata.is_symlink() => {
                let target = dir.read_link_contents(&file).map_err(explain)?;
                file.pop();
                file.push(target);
            }
            Ok(metadata) => return regular(path, metadata.file_type()).map(|()| file),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(explain(error)),
            Err(_) if links > 0 => return bad("is a dangling symbolic link; write to another path"),
            Err(_) => return Ok(file),
        }
    }
    bad("is a symbolic link that leads back to itself")
}

/// Resolves the links of a directory's path as far as it exists; missing components stay as
/// written.
fn resolve_existing(dir: &Dir, path: &Path) -> io::Result<PathBuf> {
    match (dir.canonicalize(path), path.parent(), path.file_name()) {
        (Err(error), Some(parent), Some(name)) if error.kind() == ErrorKind::NotFound => {
            let parent = if parent == "" { Path::new(".") } else { parent };
            Ok(resolve_existing(dir, parent)?.join(name))
        }
        (found, ..) => found,
    }
}

/// Opens a directory by its path without links. A link that has replaced a component since is
/// refused.
fn descend(dir: &Dir, path: &Path) -> io::Result<Dir> {
    path.components().try_fold(dir.try_clone()?, |dir, component| match component {
        Component::Normal(name) => open_itself(&dir, name),
        _ => Ok(dir),
    })
}

#[cfg(unix)]
fn open_itself(dir: &Dir, name: &OsStr) -> io::Result<Dir> {
    use cap_std::fs::OpenOptionsExt;
    use rustix::fs::OFlags;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags((OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed());
    Ok(Dir::from_std_file(dir.open_with(name, &options)?.into_std()))
}

#[cfg(not(unix))]
fn open_itself(dir: &Dir, name: &OsStr) -> io::Result<Dir> {
    dir.open_dir(name)
}

/// Creates missing directories, except on a path with `..`, which may lead out of the workspace.
fn create_parents(workspace: &Workspace, path: &Inside, parent: &Path) -> Result<(), WorkspaceError> {
    let dir = workspace.dir();
    let explain = |error| explain(&path.written, error);
    match dir.metadata(parent) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        result => return result.map(drop).map_err(explain),
    }
    if parent.components().any(|component| component == Component::ParentDir) {
        let why = "contains .. after a missing directory; write the path without ..";
        return Err(WorkspaceError::BadPath { path: path.written.clone(), why });
    }
    dir.create_dir_all(parent).map_err(explain)
}

fn lock(parent: &Path, name: &OsStr) -> MutexGuard<'static, ()> {
    let mut hasher = DefaultHasher::new();
    (parent, name).hash(&mut hasher);
    let index = hasher.finish() % WRITE_LOCKS.len() as u64;
    WRITE_LOCKS[index as usize].lock().unwrap_or_else(PoisonError::into_inner)
}
