//! Replacing a file, atomically and one writer at a time.

use std::{
    ffi::OsString,
    hash::{DefaultHasher, Hash, Hasher},
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use cap_std::fs::{Dir, Permissions};
use cap_tempfile::TempFile;

use super::{Workspace, explain, regular};
use crate::{WorkspaceError, path::Inside};

/// One turn for each file, by the hash of its path: two agents that edit one file at once would otherwise lose an edit. For the whole
/// process, because the workspaces of two agents may be one directory.
static TURNS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// A regular file that is to be written; nobody else of this process writes it meanwhile.
pub(crate) struct Target<'a> {
    workspace: &'a Workspace,
    path: &'a Inside,
    parent: Dir,
    name: OsString,
    /// Of the file that is there.
    permissions: Option<Permissions>,
    _turn: MutexGuard<'static, ()>,
}

impl<'a> Target<'a> {
    /// Finds the file, behind symbolic links too, or the place for a new one, whose parent directories are made.
    pub(crate) fn claim(workspace: &'a Workspace, path: &'a Inside) -> Result<Self, WorkspaceError> {
        let explain = |error| explain(&path.written, error);
        let dir = workspace.dir();
        let file = resolve(workspace, path)?;
        let (Some(parent), Some(name)) = (file.parent(), file.file_name()) else {
            return Err(WorkspaceError::IsDirectory { path: path.written.clone() });
        };
        let parent = if parent == "" { Path::new(".") } else { parent };
        dir.create_dir_all(parent).map_err(explain)?;
        let turn = turn(&workspace.root().join(dir.canonicalize(parent).map_err(explain)?), name);
        let parent = dir.open_dir(parent).map_err(explain)?;
        let permissions = match parent.symlink_metadata(name) {
            Ok(metadata) => {
                regular(path, metadata.file_type())?;
                Some(metadata.permissions())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(explain(error)),
        };
        Ok(Self { workspace, path, parent, name: name.to_owned(), permissions, _turn: turn })
    }

    /// Whether there is no such file yet.
    pub(crate) fn is_new(&self) -> bool {
        self.permissions.is_none()
    }

    /// What is in the file, if that is at most `max` bytes.
    pub(crate) fn read(&self, max: u64) -> Result<Vec<u8>, WorkspaceError> {
        let mut content = Vec::new();
        let file = self.workspace.open_file(self.path)?;
        file.take(max + 1)
            .read_to_end(&mut content)
            .map_err(|error| explain(&self.path.written, error))?;
        if content.len() as u64 > max {
            let why = format!("is larger than {max} bytes, which is too much to edit");
            return Err(WorkspaceError::Unfit { path: self.path.written.clone(), why });
        }
        Ok(content)
    }

    /// Puts a new file in its place. Readers see the old content or the new one, nothing in between; permissions stay.
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

/// The path with the links that stand for the file followed.
fn resolve(workspace: &Workspace, path: &Inside) -> Result<PathBuf, WorkspaceError> {
    let bad = |why| Err(WorkspaceError::BadPath { path: path.written.clone(), why });
    let dir = workspace.dir();
    match dir.metadata(&path.relative) {
        Ok(metadata) => {
            regular(path, metadata.file_type())?;
            dir.canonicalize(&path.relative).map_err(|error| explain(&path.written, error))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if path.relative.as_os_str().as_encoded_bytes().ends_with(b"/") {
                return bad("ends in a slash; add the name of a file");
            }
            if dir.symlink_metadata(&path.relative).is_ok() {
                return bad("is a symbolic link to nothing; write to another path");
            }
            Ok(path.relative.clone())
        }
        Err(error) => Err(explain(&path.written, error)),
    }
}

fn turn(parent: &Path, name: &std::ffi::OsStr) -> MutexGuard<'static, ()> {
    let mut hasher = DefaultHasher::new();
    (parent, name).hash(&mut hasher);
    let index = hasher.finish() % TURNS.len() as u64;
    TURNS[index as usize].lock().unwrap_or_else(PoisonError::into_inner)
}
