//! A new agent file; never in place of another.

use std::{
    fs,
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use thiserror::Error;

use crate::rules;

/// Writes `<dir>/<id>.md`, where `dir` is made if it is missing: all of the text or nothing, and
/// never over what is there. Returns the path.
///
/// The text is taken as it is; [`parse`](crate::parse) says whether it declares an agent. Blocks on
/// the file system.
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
/// The id is none, there is such a file, or it can't be written.
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

/// Why there is no new agent file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The id is none.
    #[error("{0}")]
    Id(String),
    /// There is such a file, and it stays as it is.
    #[error("{} is there already, and stays as it is: edit it, or take another id", path.display())]
    Exists {
        /// Which.
        path: PathBuf,
    },
    /// It can't be written.
    #[error("{} can't be written", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A file that is no agent's yet; with a dot in front, nobody reads it. It is removed on drop.
fn draft(dir: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".new-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What the umask leaves of it.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(dir)
}

#[cfg(test)]
mod tests;
