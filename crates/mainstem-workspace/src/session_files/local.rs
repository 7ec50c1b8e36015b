//! The directory of one session on this machine.

use std::{
    collections::BTreeMap,
    io::{self, ErrorKind, Read, Write},
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use cap_std::fs::{Dir, Metadata, OpenOptions};
use mainstem_message::SessionId;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::manifest::{Manifest, hash};
use crate::{
    Layout, Workspace, WorkspaceError, blocking::Stop, error::Written, walk::DEEPEST, workspace::read_only,
};

/// The most files of a session.
const MAX_FILES: usize = 10_000;

/// The largest file, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The most bytes of all files of a session.
const MAX_BYTES: u64 = 1 << 30;

/// How exact the times of files are at worst. A file that was changed this shortly before a scan
/// may change again without a new time.
const EXACTNESS: Duration = Duration::from_secs(2);

/// The files that a scan has found, by their paths.
pub(super) type Seen = BTreeMap<String, Stamp>;

/// What tells that a file has changed, without reading it.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    size: u64,
    /// When its content changed, when it or its name or rights did, and its number in the file
    /// system: a tool that unpacks sets the first one.
    modified: (SystemTime, Duration, u64),
    /// When it was looked at.
    scanned: SystemTime,
    pub(super) executable: bool,
    /// Whether it has not changed since an earlier scan.
    pub(super) is_as_before: bool,
}

impl Stamp {
    fn is_same(&self, earlier: &Self) -> bool {
        let (modified, changed, _) = earlier.modified;
        let latest = modified.max(UNIX_EPOCH + changed);
        let is_certain = earlier.scanned.duration_since(latest).is_ok_and(|age| age > EXACTNESS);
        let of = |stamp: &Self| (stamp.size, stamp.modified, stamp.executable);
        is_certain && of(self) == of(earlier)
    }
}

#[derive(Clone)]
pub(super) struct Folder {
    root: Workspace,
    name: PathBuf,
}

impl Folder {
    pub(super) fn new(root: &Workspace, session: &SessionId) -> Self {
        Self { root: root.clone(), name: Layout::new("").session(session.as_str()) }
    }

    pub(super) fn exists(&self) -> bool {
        self.root.dir().symlink_metadata(&self.name).is_ok_and(|found| found.is_dir())
    }

    /// Returns the regular files below the directory, and whether they changed since an earlier
    /// scan. Links are not followed.
    pub(super) fn scan(&self, earlier: &Seen, stop: &Stop) -> Result<Seen, WorkspaceError> {
        #[expect(clippy::disallowed_methods, reason = "it is compared with the times of files")]
        let now = SystemTime::now();
        let mut scan = Scan { seen: Seen::new(), bytes: 0, directories: 0, now, earlier, stop };
        match self.root.dir().open_dir(&self.name) {
            Ok(dir) => scan.directory(&dir, "", 0)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(unusable(&self.name, error)),
        }
        Ok(scan.seen)
    }

    /// Returns what there is, if these are exactly the files of a manifest.
    pub(super) fn compare(&self, manifest: &Manifest, stop: &Stop) -> Result<Option<Seen>, WorkspaceError> {
        let seen = self.scan(&Seen::new(), stop)?;
        if !seen.keys().eq(manifest.files.keys()) || !(self.exists() || seen.is_empty()) {
            return Ok(None);
        }
        for ((path, entry), stamp) in manifest.files.iter().zip(seen.values()) {
            stop.check()?;
            let is_like = stamp.size == entry.size && stamp.executable == entry.executable;
            if !is_like || self.read(path)?.is_none_or(|bytes| hash(&bytes) != entry.hash) {
                return Ok(None);
            }
        }
        Ok(Some(seen))
    }

    /// Reads a file; `None` if it does not exist, or is something else now.
    pub(super) fn read(&self, path: &str) -> Result<Option<Bytes>, WorkspaceError> {
        // Below the session's directory: a link of its agents that leads out of it is refused.
        let read = || {
            let mut bytes = Vec::new();
            let file = self.root.dir().open_dir(&self.name)?.open_with(path, &read_only())?;
            if !file.metadata()?.is_file() {
                return Ok(None);
            }
            file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
            io::Result::Ok(Some(bytes))
        };
        match read() {
            Ok(Some(bytes)) if bytes.len() as u64 > MAX_FILE_BYTES => Err(too_large(path)),
            Ok(bytes) => Ok(bytes.map(Bytes::from)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(unusable(path.as_ref(), error)),
        }
    }

    /// Creates an empty directory beside this one, which is removed when it is dropped.
    pub(super) fn fresh(&self) -> Result<Arc<Fresh>, WorkspaceError> {
        let fresh = Self { root: self.root.clone(), name: self.beside("new") };
        self.root.dir().create_dir_all(&fresh.name).map_err(|error| unusable(&fresh.name, error))?;
        Ok(Arc::new(Fresh(fresh)))
    }

    /// Writes a new file in a directory that no agent can reach yet.
    pub(super) fn write(&self, path: &str, bytes: &[u8], executable: bool) -> Result<(), WorkspaceError> {
        let at = self.name.join(path);
        let write = || {
            at.parent().map_or(Ok(()), |parent| self.root.dir().create_dir_all(parent))?;
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            if executable {
                cap_std::fs::OpenOptionsExt::mode(&mut options, 0o777);
            }
            self.root.dir().open_with(&at, &options)?.write_all(bytes)
        };
        write().map_err(|error| unusable(path.as_ref(), error))
    }

    /// Puts another directory in the place of this one, whose files are removed.
    pub(super) fn replace_by(&self, fresh: &Self) -> Result<(), WorkspaceError> {
        let (dir, old) = (self.root.dir(), self.beside("old"));
        let replace = || {
            match dir.rename(&self.name, dir, &old) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            dir.rename(&fresh.name, dir, &self.name)?;
            if let Err(error) = dir.remove_dir_all(&old)
                && error.kind() != ErrorKind::NotFound
            {
                tracing::warn!(%error, directory = %old.display(), "an old directory of a session can't be removed");
            }
            Ok(())
        };
        replace().map_err(|error| unusable(&self.name, error))
    }

    /// Removes the directory.
    pub(super) fn remove(&self) -> io::Result<()> {
        match self.root.dir().remove_dir_all(&self.name) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns a name that no session has.
    fn beside(&self, what: &str) -> PathBuf {
        let name = format!("%%{what}-{}", Uuid::new_v4().simple());
        self.name.with_file_name(name)
    }
}

/// A directory that is being built.
pub(super) struct Fresh(Folder);

impl Deref for Fresh {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let folder = self.0.clone();
        // Not there if it has become the session's.
        let remove = move || {
            if let Err(error) = folder.remove() {
                tracing::warn!(%error, "a directory that was not completed can't be removed");
            }
        };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

struct Scan<'a> {
    seen: Seen,
    bytes: u64,
    directories: usize,
    now: SystemTime,
    earlier: &'a Seen,
    stop: &'a Stop,
}

impl Scan<'_> {
    fn directory(&mut self, dir: &Dir, path: &str, depth: usize) -> Result<(), WorkspaceError> {
        self.directories += 1;
        if depth > DEEPEST || self.directories > MAX_FILES {
            return Err(WorkspaceError::Refused(format!(
                "the directories of this session are more than can be stored: {MAX_FILES}, at most {DEEPEST} deep; remove some"
            )));
        }
        let unusable = |error| unusable(path.as_ref(), error);
        for entry in dir.entries().map_err(unusable)? {
            self.stop.check()?;
            let entry = entry.map_err(unusable)?;
            let name = entry.file_name();
            let name = name.to_str().ok_or_else(|| {
                WorkspaceError::Refused(format!(
                    "{name:?} in {path:?} is not UTF-8, so it can't be stored; rename it"
                ))
            })?;
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            // What another call removes meanwhile is not there.
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                match dir.open_dir(name) {
                    Ok(below) => self.directory(&below, &path, depth + 1)?,
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(self::unusable(path.as_ref(), error)),
                }
            } else if found.is_file() {
                self.file(path, &found)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: String, found: &Metadata) -> Result<(), WorkspaceError> {
        let modified = found.modified().map_or(self.now, cap_std::time::SystemTime::into_std);
        let (size, executable) = (found.len(), is_executable(found));
        let (changed, inode) = changed(found);
        let modified = (modified, changed, inode);
        let mut stamp = Stamp { size, modified, scanned: self.now, executable, is_as_before: false };
        stamp.is_as_before = self.earlier.get(&path).is_some_and(|earlier| stamp.is_same(earlier));
        self.bytes = self.bytes.saturating_add(size);
        if size > MAX_FILE_BYTES {
            return Err(too_large(&path));
        }
        if self.bytes > MAX_BYTES || self.seen.len() == MAX_FILES {
            return Err(WorkspaceError::Refused(
                "the files of this session are more than can be stored: 10000 files and 1 GiB; remove some"
                    .to_owned(),
            ));
        }
        self.seen.insert(path, stamp);
        Ok(())
    }
}

/// Returns when a file, its name or its rights changed, since 1970, and its number.
#[cfg(unix)]
fn changed(found: &Metadata) -> (Duration, u64) {
    use cap_std::fs::MetadataExt as _;
    let seconds = u64::try_from(found.ctime()).unwrap_or(0);
    (Duration::new(seconds, u32::try_from(found.ctime_nsec()).unwrap_or(0)), found.ino())
}

#[cfg(not(unix))]
fn changed(_: &Metadata) -> (Duration, u64) {
    (Duration::ZERO, 0)
}

#[cfg(unix)]
fn is_executable(found: &Metadata) -> bool {
    cap_std::fs::PermissionsExt::mode(&found.permissions()) & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &Metadata) -> bool {
    false
}

fn too_large(path: &str) -> WorkspaceError {
    WorkspaceError::Refused(format!(
        "{path:?} has more than 64 MiB, so the files of this session can't be stored; remove it, or make it smaller"
    ))
}

fn unusable(path: &Path, error: io::Error) -> WorkspaceError {
    WorkspaceError::Io { path: Written::new(path.to_string_lossy()), source: error }
}
