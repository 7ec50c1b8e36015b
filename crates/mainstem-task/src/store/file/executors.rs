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

/// The number of attempts to take a lock, and the pause between two.
const ATTEMPTS: usize = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// Leases that ended so many milliseconds ago are removed: a day.
const OLD_MS: u64 = 24 * 60 * 60 * 1000;

/// The end of a lock file's name. Ids escape `+`, so no lease file has such a name.
const LOCK: &str = "+lock";

/// The files of one executor.
pub(super) struct Files {
    /// Contains the end of its lease.
    pub(super) lease: PathBuf,
    /// Locked while its process holds the lease.
    pub(super) lock: PathBuf,
}

impl Files {
    /// Returns the files of the executor to which one of them belongs.
    pub(super) fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(LOCK).unwrap_or(&name);
        Self { lease: path.with_file_name(name), lock: path.with_file_name(format!("{name}{LOCK}")) }
    }
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
            if let Some(Err(error)) = files.lock.parent().map(|directory| self.sweep(directory, until)) {
                tracing::debug!(%error, "the files of executors that have ended stay");
            }
        }
        replace(&files.lease, until.to_string().as_bytes(), false)
    }

    /// Removes the files that executors of killed processes left: those whose lock is free; where
    /// that can't be told, those whose lease ended more than a day before `until`.
    fn sweep(&self, directory: &Path, until: Timestamp) -> Result<(), TaskError> {
        let list = fs::read_dir(directory).map_err(TaskError::io("list", directory))?;
        for path in list.filter_map(|entry| Some(entry.ok()?.path())) {
            let files = Files::of(&path);
            if self.0.contains_key(&files.lock) {
                continue;
            }
            let lease = read_if_there(&files.lease)?.and_then(|text| text.trim().parse().ok());
            let is_old = lease.is_some_and(|lease: Timestamp| until.millis_since(lease) > OLD_MS);
            if !is_held(&files.lock).unwrap_or(!is_old) {
                remove(&files.lease)?;
                remove(&files.lock)?;
            }
        }
        Ok(())
    }

    pub(super) fn release(&self, files: &Files) -> Result<(), TaskError> {
        remove(&files.lease)?;
        match self.0.remove(&files.lock) {
            Some(_) => remove(&files.lock),
            None => Ok(()),
        }
    }
}

/// Returns the end of an executor's lease; `None` if it has no lease, or its process has ended.
pub(super) fn lease(files: &Files) -> Result<Option<Timestamp>, TaskError> {
    // A lease that can't be parsed is ignored: a live executor rewrites it within seconds.
    let until = read_if_there(&files.lease)?.and_then(|text| text.trim().parse().ok());
    Ok(until.filter(|_| is_held(&files.lock) != Some(false)))
}

/// Returns `true` if an executor of this machine holds the lock; `None` if the file is missing, was
/// created by another machine, or can't be locked. The lease alone decides then.
fn is_held(path: &Path) -> Option<bool> {
    fs::read_to_string(path).ok().filter(|made_by| *made_by == machine())?;
    let file = File::open(path).ok()?;
    // Shared, so that a reader does not mistake another reader for the executor.
    let is_free = file.try_lock_shared().is_ok();
    drop(Lock(file));
    Some(!is_free)
}

/// Returns an id of the machine since its boot; empty on systems without one.
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
    /// Takes the lock. Returns `None` if another set with the same executor id holds it, or if
    /// files can't be locked here; then it leaves no file.
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
                // A reader that checks the lock holds it for a moment.
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
