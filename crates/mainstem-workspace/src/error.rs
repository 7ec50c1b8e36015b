//! Errors of paths, which models read.

use std::{fmt, io, path::PathBuf};

/// The longest path that an error repeats in full, in characters.
const SHOWN: usize = 200;

/// Why a file was not read, written or found. Paths are shown as the model wrote them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The directory of the workspace can't be used.
    #[error("can't open the workspace {}: {source}", path.display())]
    #[non_exhaustive]
    Root {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The path is not valid for a file.
    #[error("{path} {why}")]
    #[non_exhaustive]
    BadPath {
        /// As written.
        path: Written,
        /// What is wrong, and what to do.
        why: &'static str,
    },
    /// It leads out of the workspace, by itself or over a symbolic link.
    #[error(
        "{path} leads out of the workspace, which is all that can be used; give a path inside it, such as \"src/main.rs\""
    )]
    #[non_exhaustive]
    Outside {
        /// As written.
        path: Written,
    },
    /// The file does not exist.
    #[error("{path} does not exist; list_files shows what does")]
    #[non_exhaustive]
    NotFound {
        /// As written.
        path: Written,
    },
    /// It is a directory; a file is needed.
    #[error("{path} is a directory; name a file in it (list_files shows them)")]
    #[non_exhaustive]
    IsDirectory {
        /// As written.
        path: Written,
    },
    /// It is something else; a directory is needed.
    #[error("{path} is not a directory; give the path of a directory, or none for the whole workspace")]
    #[non_exhaustive]
    NotDirectory {
        /// As written.
        path: Written,
    },
    /// It is a device, a pipe or a socket.
    #[error("{path} is a {kind}, which is never opened; only regular files can be used")]
    #[non_exhaustive]
    Special {
        /// As written.
        path: Written,
        /// What it is.
        kind: &'static str,
    },
    /// The file has the wrong type or size.
    #[error("{path} {why}")]
    #[non_exhaustive]
    Unfit {
        /// As written.
        path: Written,
        /// What it is, and what to do.
        why: String,
    },
    /// The system reports an error.
    #[error("{path} can't be used: {source}")]
    #[non_exhaustive]
    Io {
        /// As written.
        path: Written,
        /// The cause.
        source: io::Error,
    },
    /// The request is not valid, or not allowed for the agent; a sentence for the model.
    #[error("{0}")]
    Refused(String),
    /// The run was cancelled.
    #[error("stopped before it was done: the run was cancelled")]
    Cancelled,
}

/// A path as a model wrote it. Its text is in quotes, without control characters, and cut if it is
/// very long.
#[derive(Clone, PartialEq, Eq)]
pub struct Written(String);

impl Written {
    pub(crate) fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN) {
            Some((end, _)) => write!(f, "{:?}… ({} bytes)", &self.0[..end], self.0.len()),
            None => write!(f, "{:?}", self.0),
        }
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
