//! Executors of a workspace: their leases, and locks that the system releases when a process ends,
//! however it ends.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use dashmap::DashMap;
use mainstem_event::Timestamp;

use super::tasks::{read_if_there, replace};
use crate::TaskError;

/// The files of one executor.
pub(super) struct Files {
    /// Contains the end of its lease.
    pub(super) lease: PathBuf,
    /// Locked while its process holds the lease.
    pub(super) lock: PathBuf,
}

/// The locks that this process holds, by their path.
#[derive(Debug, Default)]
pub(super) struct Executors(DashMap<PathBuf, Lock>);

impl Executors {
    /// Renews a lease. The executor's lock is held before its lease can be read.
    pub(super) fn renew(&self, files: &Files, until: Timestamp) -> Result<(), TaskError> {
        if !self.0.contains_key(&files.lock) {
            let lock = Lock::hold(&files.lock).map_err(TaskError::io("lock", &files.lock))?;
            lock.into_iter().for_each(|lock| _ = self.0.insert(files.lock.clone(), lock));
        }
        replace(&files.lease, until.to_string().as_bytes(), false)
    }

    pub(super) fn release(&self, files: &Files) -> Result<(), TaskError> {
        remove(&files.lease)?;
        match self.0.remove(&files.lock) {
            Some(_) => remove(&files.lock),
            None => Ok(()),
        }
    }
}

/// Until when an executor is believed to be alive; `None` if it has no lease, or its process has ended.
pub(super) fn lease(files: &Files) -> Result<Option<Timestamp>, TaskError> {
    // A lease that can't be parsed counts as none: a living executor rewrites it within seconds.
    let until = read_if_there(&files.lease)?.and_then(|text| text.trim().parse().ok());
    Ok(until.filter(|_| !is_free(&files.lock)))
}

/// Returns `true` if no process holds the lock. Returns `false` if there is no file, or if files can't
/// be locked here: then the lease alone decides.
fn is_free(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let is_free = file.try_lock().is_ok();
    drop(Lock(file));
    is_free
}

fn remove(path: &Path) -> Result<(), TaskError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(TaskError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// A locked file; unlocked when dropped.
#[derive(Debug)]
struct Lock(File);

impl Lock {
    /// Takes a shared lock, which all sets with the same executor id can hold. Returns `None` and
    /// leaves no file if files can't be locked here.
    fn hold(path: &Path) -> io::Result<Option<Self>> {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.lock_shared() {
            Ok(()) => Ok(Some(Self(file))),
            Err(_) => fs::remove_file(path).map(|()| None),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process has it too between `fork` and `exec`.
        let _ = self.0.unlock();
    }
}
