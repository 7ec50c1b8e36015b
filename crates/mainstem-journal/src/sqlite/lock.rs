//! Locks of sessions between processes.

use std::{
    fs::{File, TryLockError, create_dir_all},
    io::ErrorKind,
    path::Path,
};

use mainstem_message::SessionId;

use crate::JournalError;

/// The lock of a session. It is released when dropped, and by the system when the process ends.
pub(super) struct Lock(File);

impl Lock {
    /// Returns `true` if a process holds the lock of this file.
    pub(super) fn is_held(path: &Path) -> Result<bool, JournalError> {
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            file => file.map_err(JournalError::store("open", path))?,
        };
        // A shared lock, so that processes that ask at the same time do not see each other.
        let found = file.try_lock_shared();
        drop(Self(file));
        Ok(matches!(found, Err(TryLockError::WouldBlock)))
    }

    /// Takes the lock; `None` where files can't be locked, so that only the fence protects the
    /// session.
    pub(super) fn take(path: &Path, session: &SessionId) -> Result<Option<Self>, JournalError> {
        let open = || {
            path.parent().map_or(Ok(()), create_dir_all)?;
            File::options().write(true).create(true).truncate(false).open(path)
        };
        let file = open().map_err(JournalError::store("lock", path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Err(JournalError::Busy { session: session.clone() }),
            Err(TryLockError::Error(_)) => Ok(None),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing it is not enough: a child process has the file too, between `fork` and `exec`.
        let _ = self.0.unlock();
    }
}
