//! Detects changes of agents' files without reading them.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, Metadata},
    io,
    path::PathBuf,
    time::SystemTime,
};

use crate::{
    load::is_agent,
    skills::{SKILL_FILE, below},
};

/// The state of directories at the last look: before a run, a harness asks whether it has changed.
///
/// It compares the names of the agent files and of the skills' folders, and of each file and folder
/// its size, its times of change and, on Unix, its inode. What a skill's folder has below its first
/// level is not looked at. A change within the file system's clock tick of the last look (some
/// milliseconds) that keeps size and inode is seen at the next one only.
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
    spots: Vec<(Spot, View)>,
}

/// What a watch looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Spot {
    /// A directory of agent files.
    Agents(PathBuf),
    /// A directory of skills' folders.
    Skills(PathBuf),
    /// One file.
    File(PathBuf),
}

/// A spot and its state; the state of one that can't be read is its error.
type View = Result<BTreeMap<OsString, Option<Stamp>>, io::ErrorKind>;

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device, inode, and the time of the inode's change.
    inode: (u64, u64, i64, i64),
}

impl Watch {
    /// Looks at these directories of agent files, which need not exist. Blocks on the file system.
    #[must_use]
    pub fn new(dirs: impl IntoIterator<Item: Into<PathBuf>>) -> Self {
        let mut watch = Self { spots: Vec::new() };
        watch.add(dirs.into_iter().map(|dir| Spot::Agents(dir.into())));
        watch
    }

    /// Looks at these directories of skills, too, which need not exist. Blocks on the file system.
    #[must_use]
    pub fn with_skills(mut self, dirs: impl IntoIterator<Item: Into<PathBuf>>) -> Self {
        self.add(dirs.into_iter().map(|dir| Spot::Skills(dir.into())));
        self
    }

    /// Looks at these files, too, in the place of those of the last call. Blocks on the file
    /// system.
    pub fn look_at(&mut self, files: impl IntoIterator<Item: Into<PathBuf>>) {
        self.spots.retain(|(spot, _)| !matches!(spot, Spot::File(_)));
        self.add(files.into_iter().map(|file| Spot::File(file.into())));
    }

    fn add(&mut self, spots: impl Iterator<Item = Spot>) {
        self.spots.extend(spots.map(|spot| {
            let view = spot.view();
            (spot, view)
        }));
    }

    /// Returns `true` if anything differs from the last look. Lists the directories and reads each
    /// file's metadata.
    ///
    /// Blocks on the file system.
    #[must_use]
    pub fn changed(&mut self) -> bool {
        let mut changed = false;
        for (spot, last) in &mut self.spots {
            let now = spot.view();
            changed |= now != *last;
            *last = now;
        }
        changed
    }
}

impl Spot {
    fn view(&self) -> View {
        let stamps = |paths: Vec<PathBuf>| Ok(paths.into_iter().map(stamped).collect());
        match self {
            Self::File(path) => stamps(vec![path.clone()]),
            Self::Agents(dir) => {
                let paths = below(dir).map_err(|error| error.kind())?;
                stamps(paths.into_iter().filter(|path| is_agent(path)).collect())
            }
            Self::Skills(dir) => {
                let folders = below(dir).map_err(|error| error.kind())?;
                stamps(folders.into_iter().flat_map(|folder| [folder.join(SKILL_FILE), folder]).collect())
            }
        }
    }
}

/// Follows links, because the text counts. A dangling link has no state.
fn stamped(path: PathBuf) -> (OsString, Option<Stamp>) {
    let stamp = fs::metadata(&path).ok().map(|metadata| Stamp::new(&metadata));
    (path.into_os_string(), stamp)
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
