//! Parses the paths of models into paths below the workspace's root. Pure: only the system can tell
//! whether a link leads out.

use std::path::{Path, PathBuf};

use crate::{WorkspaceError, error::Written};

/// The longest path in bytes, as on Linux.
const LONGEST: usize = 4096;

/// A path relative to the root, with its text as written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inside {
    pub(crate) written: Written,
    pub(crate) relative: PathBuf,
}

impl Inside {
    /// Parses a path. An absolute path must be below one of `roots`, which are names of the same
    /// directory.
    pub(crate) fn new(path: &str, roots: &[&Path]) -> Result<Self, WorkspaceError> {
        let written = Written::new(path);
        if let Some(why) = objection(path) {
            return Err(WorkspaceError::BadPath { path: written, why });
        }
        let path = Path::new(path);
        let relative = if path.has_root() {
            roots.iter().find_map(|root| path.strip_prefix(root).ok())
        } else {
            Some(path)
        };
        match relative {
            Some(relative) if relative.as_os_str().is_empty() => Ok(Self { written, relative: ".".into() }),
            Some(relative) => Ok(Self { written, relative: relative.to_owned() }),
            None => Err(WorkspaceError::Outside { path: written }),
        }
    }

    /// Returns the root itself.
    pub(crate) fn root() -> Self {
        Self { written: Written::new("."), relative: ".".into() }
    }
}

fn objection(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        Some("is empty; give a path such as \"src/main.rs\"")
    } else if path.contains('\0') {
        Some("has a NUL character in it, which no path can have")
    } else if path.len() > LONGEST {
        Some("is too long for a path")
    } else if path == "~" || path.starts_with("~/") {
        Some("begins with ~, which stands for nothing here; give a path relative to the workspace")
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
