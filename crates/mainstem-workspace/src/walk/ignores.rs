//! Ignore files on the way from the root to a directory; the nearest one with a rule for an entry
//! decides.

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use super::{Entry, Kind};
use crate::{Workspace, error::Written, path::Inside};

/// In order of precedence.
const FILES: [&str; 2] = [".ignore", ".gitignore"];

/// The repository's exclusions that are not in a `.gitignore`.
const EXCLUDE: &str = ".git/info/exclude";

/// The number of bytes of an ignore file that are read.
const MAX_BYTES: u64 = 1 << 20;

/// The rules of one directory, and those above.
#[derive(Debug)]
pub(super) struct Ignores {
    rules: Vec<Gitignore>,
    above: Option<Arc<Self>>,
}

impl Ignores {
    /// Returns the rules for the entries of `path`, given those for `path` itself.
    pub(super) fn of(workspace: &Workspace, path: &Path, above: Option<Arc<Self>>) -> Option<Arc<Self>> {
        let mut files = FILES.to_vec();
        if path == "" {
            files.push(EXCLUDE);
        }
        let rules: Vec<_> = files.into_iter().filter_map(|file| read(workspace, path, file)).collect();
        if rules.is_empty() { above } else { Some(Arc::new(Self { rules, above })) }
    }

    /// Returns the rules for `path` itself.
    pub(super) fn above(workspace: &Workspace, path: &Path) -> Option<Arc<Self>> {
        let mut parents: Vec<_> = path.ancestors().skip(1).collect();
        parents.reverse();
        parents.into_iter().fold(None, |above, parent| Self::of(workspace, parent, above))
    }

    pub(super) fn excludes(&self, entry: &Entry) -> bool {
        let is_dir = entry.kind == Kind::Directory;
        for rules in &self.rules {
            match rules.matched(&entry.path, is_dir) {
                Match::None => {}
                decision => return decision.is_ignore(),
            }
        }
        self.above.as_ref().is_some_and(|above| above.excludes(entry))
    }
}

/// Reads the rules of a file. A file that is missing or can't be read has none, and a line that
/// can't be parsed is skipped, as by git.
fn read(workspace: &Workspace, dir: &Path, file: &str) -> Option<Gitignore> {
    let relative: PathBuf = dir.join(file);
    let file = workspace.open_file(&Inside { written: Written::new(file), relative }).ok()?;
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    let mut rules = GitignoreBuilder::new(dir);
    for line in String::from_utf8_lossy(&text).lines() {
        let _ = rules.add_line(None, line);
    }
    rules.build().ok()
}
