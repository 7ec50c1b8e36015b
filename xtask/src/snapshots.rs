//! `cargo xtask snapshots`: each stored snapshot is reviewed, and read by a test.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::problem::{Problem, report};
use crate::{suite, tree};

pub(crate) fn run(root: &Path, slow: bool) -> Result<()> {
    report(&pending(&tree::files(root)?), "review with `cargo insta review` (from cargo-insta)")?;
    let root = root.canonicalize()?;
    let read = suite::run(&root, slow)?.iter().map(|path| tree::relative(&root, path)).collect();
    report(&unread(&tree::files(&root)?, &read), "remove them, or read them in a test")
}

/// Drafts that insta left beside a snapshot (`.snap.new`) or beside an inline one
/// (`.pending-snap`).
pub(crate) fn pending(files: &[String]) -> Vec<Problem> {
    let drafts = files.iter().filter(|path| path.ends_with(".snap.new") || path.ends_with(".pending-snap"));
    drafts.map(|path| Problem::file(path, "snapshot waits for review")).collect()
}

/// Snapshot files that no test read.
fn unread(files: &[String], read: &BTreeSet<String>) -> Vec<Problem> {
    let snapshots = files.iter().filter(|path| path.ends_with(".snap"));
    let unread = snapshots.filter(|path| !read.contains(*path));
    unread.map(|path| Problem::file(path, "no test reads this snapshot")).collect()
}

#[cfg(test)]
mod tests;
