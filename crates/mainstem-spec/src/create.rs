//! Creates an agent's file; never replaces another.

use std::{
    fs,
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use thiserror::Error;

use crate::rules;

/// Writes `<dir>/<id>.md`, creates `dir` if it is missing, and returns the path. Either all of the
/// text is written or none, and an existing file is never replaced.
///
/// The text is not checked; [`parse`](crate::parse) does that. Blocks on the file system.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let dir = dir.path();
/// let text = "---\ndescription: Reviews code\n---\nBe brief.\n";
/// let path = mainstem_spec::create_file(dir, "reviewer", text).unwrap();
/// assert_eq!(std::fs::read_to_string(path)?, text);
/// assert!(mainstem_spec::create_file(dir, "reviewer", "another").is_err());
/// assert!(mainstem_spec::create_file(dir, "../reviewer", text).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The id is invalid, the file exists, or it can't be written.
pub fn create_file(dir: &Path, id: &str, text: &str) -> Result<PathBuf, CreateError> {
    rules::id(id).map_err(CreateError::Id)?;
    let path = dir.join(format!("{id}.md"));
    let failed = |source| CreateError::Io { path: path.clone(), source };
    fs::create_dir_all(dir).map_err(failed)?;
    let mut file = draft(dir).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    match file.persist_noclobber(&path) {
        Ok(_) => Ok(path),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Err(CreateError::Exists { path }),
        Err(error) => Err(failed(error.error)),
    }
}

/// Why an agent's file was not created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The id is invalid.
    #[error("{0}")]
    Id(String),
    /// The file exists, and is not changed.
    #[error("{} is there already, and stays as it is: edit it, or take another id", path.display())]
    #[non_exhaustive]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// It can't be written.
    #[error("{} can't be written", path.display())]
    #[non_exhaustive]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

/// A temporary file, removed on drop. Its name begins with a dot, so it is not read as an agent.
fn draft(dir: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".new-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The umask removes some of these bits.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(dir)
}

#[cfg(test)]
mod tests;
