//! Whether agent files have changed, without reading them.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, Metadata},
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::load::is_agent;

/// A look at directories, to be repeated: between two turns a harness asks whether it has to load again.
///
/// It compares the names of the agent files, and of each file its size, its times of change and, on Unix, its inode. A change within
/// the file system's clock tick of the last look (some milliseconds) that keeps size and inode is seen at the next one only.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let dir = dir.path();
/// use mainstem_spec::Watch;
///
/// let mut watch = Watch::new([dir]);
/// assert!(!watch.changed());
/// std::fs::write(dir.join("critic.md"), "---\ndescription: Criticises\n---\n")?;
/// assert!(watch.changed());
/// assert!(!watch.changed());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Watch {
    dirs: Vec<(PathBuf, View)>,
}

/// A directory as it looks; one that can't be read looks like its error.
type View = Result<BTreeMap<OsString, Option<Stamp>>, io::ErrorKind>;

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device, inode, and the time of the inode's change.
    inode: (u64, u64, i64, i64),
}

impl Watch {
    /// Looks at these directories, which need not exist. Blocks on the file system.
    #[must_use]
    pub fn new(dirs: impl IntoIterator<Item: Into<PathBuf>>) -> Self {
        let look = |dir: PathBuf| {
            let view = view(&dir);
            (dir, view)
        };
        Self { dirs: dirs.into_iter().map(Into::into).map(look).collect() }
    }

    /// Whether anything differs from the last look. Lists the directories and asks for each agent file's state, no more.
    ///
    /// Blocks on the file system.
    #[must_use]
    pub fn changed(&mut self) -> bool {
        let mut changed = false;
        for (dir, last) in &mut self.dirs {
            let now = view(dir);
            changed |= now != *last;
            *last = now;
        }
        changed
    }
}

fn view(dir: &Path) -> View {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(|error| error.kind())? {
        let entry = entry.map_err(|error| error.kind())?;
        let path = entry.path();
        if is_agent(&path) {
            // Follows links: what counts is the text. One that leads nowhere has no state.
            files.insert(entry.file_name(), fs::metadata(&path).ok().map(|metadata| Stamp::new(&metadata)));
        }
    }
    Ok(files)
}

impl Stamp {
    fn new(metadata: &Metadata) -> Self {
        Self { bytes: metadata.len(), modified: metadata.modified().ok(), inode: inode(metadata) }
    }
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> (u64, u64, i64, i64) {
    use std::os::unix::fs::MetadataExt;

    (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> (u64, u64, i64, i64) {
    (0, 0, 0, 0)
}

#[cfg(test)]
mod tests;
