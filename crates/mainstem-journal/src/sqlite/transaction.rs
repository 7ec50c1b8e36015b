//! One transaction, and the changes of the open sessions that follow from its commit.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry as Slot},
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use mainstem_event::AgentEvent;
use mainstem_message::SessionId;
use rusqlite::Connection;

use super::{
    data,
    lock::Lock,
    op::{Op, Opened, Refusal},
    record::Entry,
    schema,
    table::{self, Head},
};
use crate::{Checkpoint, Claimed, JournalError, backend::Progress};

/// The sessions that are open here, by row.
pub(super) type Sessions = HashMap<i64, Open>;

/// Releases a session; the tables stay as they are.
pub(super) fn release(open: &mut Sessions, entry: &Entry) {
    if open.get(&entry.row).is_some_and(|open| open.head.epoch == entry.epoch) {
        open.remove(&entry.row);
    }
}

fn busy(session: &SessionId) -> JournalError {
    JournalError::Busy { session: session.clone() }
}

/// A session that is open here.
pub(super) struct Open {
    head: Head,
    /// Held until the session is released.
    lock: Option<Lock>,
}

/// Applies requests to the tables. `open` stays as it is until [`Changes::commit`], so that a
/// transaction can be retried.
pub(super) struct Transaction<'a> {
    sql: &'a Connection,
    path: &'a Path,
    open: &'a Sessions,
    /// The changes of parts that were applied apart.
    accepted: Changes,
    changes: Changes,
    /// Rows whose heads are not in the table yet.
    dirty: HashSet<i64>,
}

/// The changes that follow from the commit of a transaction.
#[derive(Default)]
pub(super) struct Changes {
    /// The sessions that were written or opened; `None` if released.
    heads: HashMap<i64, Option<Head>>,
    /// The locks of the sessions that were opened or deleted.
    locks: HashMap<i64, Option<Lock>>,
    /// The lock files that are obsolete.
    obsolete: Vec<PathBuf>,
    /// The last event of each record.
    appended: HashMap<i64, (Arc<Entry>, u64)>,
    /// Records whose session has another owner.
    lost: Vec<Arc<Entry>>,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(sql: &'a Connection, path: &'a Path, open: &'a Sessions) -> Self {
        Self {
            sql,
            path,
            open,
            accepted: Changes::default(),
            changes: Changes::default(),
            dirty: HashSet::new(),
        }
    }

    /// Applies a request and sets its result.
    pub(super) fn apply(&mut self, op: &mut Op) -> rusqlite::Result<()> {
        match op {
            Op::Append(entry, event) => self.append(entry, event)?,
            Op::Open(session, answer) => answer.find_or_ask_again(self.open(session)?, || Err(busy(session))),
            Op::IsOpen(session, answer) => answer.find_or_ask_again(self.is_open(session)?, || Ok(true)),
            Op::Release(entry) => self.release(entry)?,
            Op::Claim(claim, answer) => {
                let earlier = table::claim(self.sql, claim)?;
                answer.find(Ok(earlier.map_or(Claimed::New, |earlier| claim.outcome_after(&earlier))));
            }
            Op::StoreData(data, answer) => {
                self.write_heads()?;
                answer.find(Ok(data::add(self.sql, data)?));
            }
            Op::Checkpoint(session, checkpoint, answer) => {
                answer.find(Ok(self.set_checkpoint(session, checkpoint)?));
            }
            Op::Delete(session, answer) => {
                answer.find_or_ask_again(self.delete(session)?, || Err(busy(session)))
            }
            Op::Prune(session, through, answer) => answer.find(self.prune(session, *through)?),
            Op::Flush(answer) | Op::Close(answer) if self.sql.is_readonly("main")? => answer.find(Ok(())),
            Op::Flush(answer) | Op::Close(answer) => answer.find(Ok(table::sign(self.sql, schema::PROGRAM)?)),
        }
        Ok(())
    }

    /// Applies requests that fail together. If they fail, only they are undone and the inner error
    /// is theirs; an outer error is the transaction's.
    pub(super) fn apply_apart(&mut self, ops: &mut [Op]) -> rusqlite::Result<rusqlite::Result<()>> {
        self.sql.execute_batch("SAVEPOINT part")?;
        let applied = ops.iter_mut().try_for_each(|op| self.apply(op)).and_then(|()| self.write_heads());
        match applied {
            Ok(()) => {
                self.sql.execute_batch("RELEASE part")?;
                self.accepted.extend(std::mem::take(&mut self.changes));
                Ok(Ok(()))
            }
            // The database has undone the whole transaction, as it does if the disk is full.
            Err(error) if self.sql.is_autocommit() => Err(error),
            Err(error) => {
                self.sql.execute_batch("ROLLBACK TO part; RELEASE part")?;
                (self.changes, self.dirty) = Default::default();
                Ok(Err(error))
            }
        }
    }

    /// Completes the tables. The returned changes hold once the transaction is committed.
    pub(super) fn finish(mut self) -> rusqlite::Result<Changes> {
        self.write_heads()?;
        self.accepted.extend(self.changes);
        Ok(self.accepted)
    }

    fn append(&mut self, entry: &Arc<Entry>, event: &AgentEvent) -> rusqlite::Result<()> {
        let (sql, row) = (self.sql, entry.row);
        if entry.progress.failure().is_some() {
            return Ok(());
        }
        let Some(head) = self.head(entry)? else {
            self.changes.lost.push(entry.clone());
            return Ok(());
        };
        table::insert(sql, row, event)?;
        head.state.apply(event);
        self.dirty.insert(row);
        self.changes.appended.insert(row, (entry.clone(), event.seq));
        Ok(())
    }

    /// Returns the head of a record's session; `None` if another owner has the session, or it was
    /// deleted.
    fn head(&mut self, entry: &Entry) -> rusqlite::Result<Option<&mut Head>> {
        let Self { sql, open, accepted, changes, .. } = self;
        let head = match (changes.heads.entry(entry.row), accepted.heads.get(&entry.row)) {
            (Slot::Occupied(known), _) => known.into_mut(),
            (Slot::Vacant(new), Some(accepted)) => new.insert(accepted.clone()),
            (Slot::Vacant(new), None) => {
                let is_ours = table::epoch(sql, entry.row)? == Some(entry.epoch);
                let Some(open) = open.get(&entry.row).filter(|_| is_ours) else { return Ok(None) };
                new.insert(Some(open.head.clone()))
            }
        };
        Ok(head.as_mut().filter(|head| head.epoch == entry.epoch))
    }

    /// Brings the table up to date for requests that read it.
    fn write_heads(&mut self) -> rusqlite::Result<()> {
        let heads = &self.changes.heads;
        let dirty = self.dirty.drain().filter_map(|row| heads.get(&row)?.as_ref());
        dirty.into_iter().try_for_each(|head| table::update(self.sql, head))
    }

    fn release(&mut self, entry: &Entry) -> rusqlite::Result<()> {
        self.write_heads()?;
        self.changes.heads.insert(entry.row, None);
        Ok(())
    }

    fn open(&mut self, session: &SessionId) -> rusqlite::Result<Result<Opened, Refusal>> {
        self.write_heads()?;
        table::create(self.sql, session)?;
        let Some(head) = table::head(self.sql, session)? else {
            return Ok(Err(Refusal::Error(JournalError::Unknown { session: session.clone() })));
        };
        // The head is current: other processes can't write between the lock and the commit.
        if let Err(refusal) = self.lock(head.row, session) {
            return Ok(Err(refusal));
        }
        let head = Head { epoch: table::take_over(self.sql, head.row)?, ..head };
        let position = head.state.position.clone();
        let entry = Entry {
            session: session.clone(),
            row: head.row,
            epoch: head.epoch,
            progress: Progress::new(position.last),
        };
        self.changes.heads.insert(head.row, Some(head));
        Ok(Ok(Opened::new(Arc::new(entry), position)))
    }

    /// Locks a session, unless this transaction has released it, so that its lock is still held.
    fn lock(&mut self, row: i64, session: &SessionId) -> Result<(), Refusal> {
        if self.is_open_here(row) {
            return Err(Refusal::OpenHere);
        }
        if !self.has_lock(row) {
            let lock = Lock::take(&self.lock_file(row), session).map_err(Refusal::Error)?;
            self.changes.locks.insert(row, lock);
        }
        Ok(())
    }

    fn is_open_here(&self, row: i64) -> bool {
        let head = self.changes.heads.get(&row).or_else(|| self.accepted.heads.get(&row));
        head.map_or_else(|| self.open.contains_key(&row), Option::is_some)
    }

    /// Returns `true` if this process holds the session's lock. A session that the transaction has
    /// released is locked until the commit.
    fn has_lock(&self, row: i64) -> bool {
        let is_new = [&self.accepted, &self.changes].iter().any(|changes| changes.locks.contains_key(&row));
        is_new || self.open.contains_key(&row)
    }

    fn lock_file(&self, row: i64) -> PathBuf {
        let mut directory = OsString::from(self.path);
        directory.push(".locks");
        PathBuf::from(directory).join(row.to_string())
    }

    /// Reads only, so it needs no transaction.
    fn is_open(&self, session: &SessionId) -> rusqlite::Result<Result<bool, Refusal>> {
        let Some((row, _)) = table::row_of(self.sql, session)? else { return Ok(Ok(false)) };
        Ok(match (self.is_open_here(row), self.has_lock(row)) {
            (true, _) => Err(Refusal::OpenHere),
            (false, true) => Ok(false),
            (false, false) => Lock::is_held(&self.lock_file(row)).map_err(Refusal::Error),
        })
    }

    fn set_checkpoint(&mut self, session: &SessionId, checkpoint: &Checkpoint) -> rusqlite::Result<()> {
        self.write_heads()?;
        table::store_checkpoint(self.sql, session, checkpoint)
    }

    /// Reads only the row's number and whether it has events, so that a session with a damaged row
    /// can be deleted.
    fn delete(&mut self, session: &SessionId) -> rusqlite::Result<Result<bool, Refusal>> {
        self.write_heads()?;
        let Some((row, has_events)) = table::row_of(self.sql, session)? else { return Ok(Ok(false)) };
        if let Err(refusal) = self.lock(row, session) {
            return Ok(Err(refusal));
        }
        table::delete(self.sql, row, session)?;
        // Row numbers are not used again, so other processes do not need this file.
        self.changes.obsolete.push(self.lock_file(row));
        self.changes.heads.insert(row, None);
        Ok(Ok(has_events))
    }

    fn prune(&mut self, session: &SessionId, through: u64) -> rusqlite::Result<Result<u64, JournalError>> {
        self.write_heads()?;
        let first = table::prune(self.sql, session, through)?;
        Ok(first.ok_or_else(|| JournalError::Unknown { session: session.clone() }))
    }
}

impl Changes {
    /// Adds later changes.
    fn extend(&mut self, later: Self) {
        self.heads.extend(later.heads);
        self.locks.extend(later.locks);
        self.obsolete.extend(later.obsolete);
        self.appended.extend(later.appended);
        self.lost.extend(later.lost);
    }

    /// Applies them to the open sessions, and notifies the records. Called after the commit.
    pub(super) fn commit(mut self, path: &Path, open: &mut Sessions) {
        for (row, head) in self.heads {
            match head {
                Some(head) => {
                    let lock = open.remove(&row).map(|open| open.lock);
                    let lock = lock.or_else(|| self.locks.remove(&row)).flatten();
                    open.insert(row, Open { head, lock });
                }
                None => _ = open.remove(&row),
            }
        }
        for file in self.obsolete {
            let _ = std::fs::remove_file(file);
        }
        for entry in self.lost {
            let (path, session) = (path.display(), &entry.session);
            entry
                .progress
                .fail(format!("{path}: session {session} was taken over by another owner, or deleted"));
        }
        self.appended.into_values().for_each(|(entry, last)| entry.progress.commit(last));
    }
}
