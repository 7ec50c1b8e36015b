//! One file of tasks: reading, replacing, setting aside.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use dashmap::DashMap;
use mainstem_message::TaskId;
use tempfile::NamedTempFile;

use crate::{TaskError, TaskRecord};

pub(super) type Tasks = BTreeMap<TaskId, TaskRecord>;

/// Reads files, and caches them until they change.
#[derive(Debug, Default)]
pub(super) struct Reader(DashMap<PathBuf, (Stamp, Arc<Tasks>)>);

/// The metadata that changes whenever a file is replaced.
#[derive(Clone, Debug, PartialEq)]
struct Stamp {
    modified: Option<SystemTime>,
    len: u64,
    inode: u64,
}

impl Reader {
    /// Returns the tasks of a file; an absent file has none.
    pub(super) fn read(&self, path: &Path) -> Result<Arc<Tasks>, TaskError> {
        let stamp = match fs::metadata(path) {
            Ok(metadata) => Stamp::of(&metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Arc::default()),
            Err(error) => return Err(TaskError::io("read", path)(error)),
        };
        if let Some(known) = self.0.get(path).filter(|known| known.0 == stamp) {
            return Ok(known.1.clone());
        }
        let tasks = match parse(path)? {
            Ok(tasks) => Arc::new(tasks),
            // The holder of the lock may be setting the file aside.
            Err(_) => lock(path).and_then(|_lock| load(path)).map(Arc::new)?,
        };
        self.0.insert(path.to_owned(), (stamp, tasks.clone()));
        Ok(tasks)
    }
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Self { modified: metadata.modified().ok(), len: metadata.len(), inode }
    }
}

/// Reads a file, and renames one that can't be parsed. The caller holds the file's lock.
pub(super) fn load(path: &Path) -> Result<Tasks, TaskError> {
    parse(path)?.map_err(|problem| match set_aside(path) {
        Ok(renamed_to) => {
            TaskError::Corrupt { path: path.to_owned(), renamed_to, problem: problem.to_string() }
        }
        Err(error) => TaskError::io("rename", path)(error),
    })
}

/// Reads and parses a file; no tasks if the file does not exist.
fn parse(path: &Path) -> Result<serde_json::Result<Tasks>, TaskError> {
    let text = read_if_there(path)?;
    Ok(text.map_or_else(|| Ok(Tasks::new()), |text| serde_json::from_str(&text)))
}

/// Locks the file against other processes, until the lock is dropped.
pub(super) fn lock(path: &Path) -> Result<File, TaskError> {
    let lock = path.with_extension("lock");
    let open = || {
        fs::create_dir_all(path.parent().unwrap_or_else(|| Path::new(".")))?;
        let file = File::options().create(true).truncate(false).write(true).open(&lock)?;
        file.lock()?;
        Ok(file)
    };
    open().map_err(TaskError::io("lock", &lock))
}

pub(super) fn read_if_there(path: &Path) -> Result<Option<String>, TaskError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TaskError::io("read", path)(error)),
    }
}

/// Renames a file to the first name that is free.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    for n in 1.. {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".corrupt-{n}"));
        let renamed = PathBuf::from(name);
        if !renamed.exists() {
            return fs::rename(path, &renamed).map(|()| renamed);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Replaces a file atomically: a reader sees the old one or the new one. If `durable` is set, it is
/// on the disk when this returns.
pub(super) fn replace(path: &Path, content: &[u8], durable: bool) -> Result<(), TaskError> {
    let directory = path.parent().unwrap_or_else(|| Path::new("."));
    let write = || {
        fs::create_dir_all(directory)?;
        let mut file = NamedTempFile::new_in(directory)?;
        file.write_all(content)?;
        if durable {
            file.as_file().sync_all()?;
        }
        file.persist(path)?;
        if durable { sync_directory(directory) } else { Ok(()) }
    };
    write().map_err(TaskError::io("write", path))
}

/// Makes a renamed file durable. Only Unix systems open directories as files.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}
