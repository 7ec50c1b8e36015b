//! Where the workspace lies, and which files it has.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use walkdir::WalkDir;

/// Folders that hold nothing of ours.
const SKIPPED: [&str; 3] = [".git", "node_modules", "target"];

/// Returns the root of the workspace. Asked of the running cargo rather than compiled in: clones
/// may share a target folder.
pub(crate) fn root() -> Result<PathBuf> {
    let xtask = std::env::var("CARGO_MANIFEST_DIR").context("start this as `cargo xtask`")?;
    let root = Path::new(&xtask).parent().context("xtask has no parent folder")?;
    Ok(root.to_owned())
}

/// Returns all files below `root`, as sorted paths from it with forward slashes.
pub(crate) fn files(root: &Path) -> Result<Vec<String>> {
    let kept = WalkDir::new(root).sort_by_file_name().into_iter().filter_entry(|entry| {
        !(entry.file_type().is_dir() && SKIPPED.iter().any(|name| entry.file_name() == *name))
    });
    let mut files = Vec::new();
    for entry in kept {
        let entry = entry?;
        if !entry.file_type().is_dir() {
            files.push(relative(root, entry.path()));
        }
    }
    Ok(files)
}

/// `path` as seen from `root`, with forward slashes.
pub(crate) fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

#[cfg(test)]
mod tests;
