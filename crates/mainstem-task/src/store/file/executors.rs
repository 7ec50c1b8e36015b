//! Executors of a workspace: their leases, and locks that the system releases when a process ends,
//! however it ends.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use dashmap::DashMap;
use mainstem_event::Timestamp;

use super::tasks::{read_if_there, replace};
use crate::TaskError;

/// How often a lock is tried to take, and the pause between two attempts.
const ATTEMPTS: usize = 50;
const PAUSE: Duration = Duration::from_millis(2);

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

/// Returns `true` if this machine created the lock file and the lock is free. Returns `false` if the
/// file is missing, was created by another machine, or can't be locked; the lease alone decides then.
fn is_free(path: &Path) -> bool {
    if !matches!(fs::read_to_string(path), Ok(made_by) if made_by == machine()) {
        return false;
    }
    let Ok(file) = File::open(path) else { return false };
    // Shared, so that readers don't take one another for the executor.
    let is_free = file.try_lock_shared().is_ok();
    drop(Lock(file));
    is_free
}

/// Identifies a machine that has been running since then; empty where the system does not say.
fn machine() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
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
    /// Takes the lock. Returns `None` if another set with the same executor id holds it, or, and then
    /// leaves no file, if files can't be locked here.
    fn hold(path: &Path) -> io::Result<Option<Self>> {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let mut file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        for _ in 0..ATTEMPTS {
            match file.try_lock() {
                Ok(()) => {
                    file.set_len(0)?;
                    file.write_all(machine().as_bytes())?;
                    return Ok(Some(Self(file)));
                }
                // A reader that looks whether it is free has it for a moment.
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
                Err(TryLockError::Error(_)) => return fs::remove_file(path).map(|()| None),
            }
        }
        Ok(None)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process has it too between `fork` and `exec`.
        let _ = self.0.unlock();
    }
}
