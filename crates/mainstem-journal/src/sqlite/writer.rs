//! The one thread that writes: groups of events, and what else is asked, in order.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use mainstem_event::{AgentEvent, Position};
use mainstem_message::SessionId;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use super::{
    lock::Lock,
    queue::{Op, Queue, Reply},
    record::Entry,
    schema,
    table::{self, Head},
};
use crate::{Checkpoint, Claim, Claimed, JournalError};

/// How often a commit is tried while another process writes; each time waits for some seconds.
const ATTEMPTS: usize = 6;

type Group = Vec<(Arc<Entry>, AgentEvent)>;

type Opened = (Arc<Entry>, Position);

type Opens = Vec<(SessionId, Reply<Opened>)>;

pub(super) struct Writer {
    connection: Connection,
    path: PathBuf,
    open: HashMap<i64, Open>,
    is_closed: bool,
}

/// A session that is open here.
struct Open {
    session: SessionId,
    head: Head,
    /// Held until the session is released.
    _lock: Option<Lock>,
}

impl Writer {
    pub(super) fn new(connection: Connection, path: PathBuf) -> Self {
        Self { connection, path, open: HashMap::new(), is_closed: false }
    }

    pub(super) fn run(mut self, queue: &Queue) {
        while let Some(ops) = queue.next() {
            let (mut group, mut opens) = (Group::new(), Opens::new());
            for op in ops {
                match op {
                    Op::Append(entry, event) => group.push((entry, event)),
                    // A session is opened before its first append, so the order of `opens` and `group` does not matter.
                    Op::Open(session, reply) if self.is_new(&session, &opens) => opens.push((session, reply)),
                    op => {
                        self.commit(std::mem::take(&mut group));
                        self.open_all(std::mem::take(&mut opens));
                        self.serve(op, queue);
                    }
                }
            }
            self.commit(group);
            self.open_all(opens);
        }
    }

    fn is_new(&self, session: &SessionId, opens: &Opens) -> bool {
        !self.has_open(session) && opens.iter().all(|(other, _)| other != session)
    }

    /// Opens sessions in two transactions for all of them, so that many new sessions of one caller do not hold up the events of others with
    /// a sync each; or one by one, if that fails.
    fn open_all(&mut self, opens: Opens) {
        if opens.is_empty() {
            return;
        }
        let sessions: Vec<_> = opens.iter().map(|(session, _)| session.clone()).collect();
        match self.open(&sessions) {
            Ok(opened) => opens.into_iter().zip(opened).for_each(|((_, reply), one)| _ = reply.send(one)),
            Err(_) if opens.len() > 1 => opens.into_iter().for_each(|open| self.open_all(vec![open])),
            Err(error) => _ = opens.into_iter().next().map(|(_, reply)| reply.send(Err(error))),
        }
    }

    fn serve(&mut self, op: Op, queue: &Queue) {
        match op {
            Op::Append(..) => {}
            // This thread itself may have been the last to let go of the log, while it woke it; the release is in the queue then.
            Op::Open(session, reply) if self.has_open(&session) => queue.push(Op::OpenAgain(session, reply)),
            Op::Open(session, reply) | Op::OpenAgain(session, reply) => self.open_all(vec![(session, reply)]),
            Op::IsOpen(session, reply) => _ = reply.send(self.is_open(&session)),
            Op::Release(entry) => _ = self.open.remove(&entry.row),
            Op::Claim(claim, reply) => _ = reply.send(self.claim(&claim)),
            Op::Checkpoint(session, checkpoint, reply) => {
                _ = reply.send(self.keep(&session, &checkpoint));
            }
            Op::Delete(session, reply) => _ = reply.send(self.delete(&session)),
            Op::Prune(session, through, reply) => _ = reply.send(self.prune(&session, through)),
            Op::Flush(reply) => _ = reply.send(self.flush()),
            Op::Close(reply) => _ = reply.send(self.close()),
        }
    }

    /// Commits a group, or as much of it as can be: each session's trouble is its own.
    fn commit(&mut self, mut group: Group) {
        group.retain(|(entry, _)| !entry.has_failed());
        let Some((first, _)) = group.first() else { return };
        let is_mixed = group.iter().any(|(entry, _)| entry.row != first.row);
        match self.write(&group) {
            Ok(()) => {}
            Err(_) if is_mixed => {
                let mut each: HashMap<i64, Group> = HashMap::new();
                group.into_iter().for_each(|(entry, event)| {
                    each.entry(entry.row).or_default().push((entry, event));
                });
                each.into_values().for_each(|group| self.commit(group));
            }
            Err(error) => {
                let path = self.path.display();
                let session = &first.session;
                first.fail(format!("{path}: session {session} is not recorded any more: {error}"));
            }
        }
    }

    fn write(&mut self, group: &Group) -> Result<(), JournalError> {
        if self.is_closed {
            return Err(JournalError::Closed);
        }
        let is_durable = group.iter().any(|(_, event)| event.kind.is_durable());
        let mut heads = HashMap::new();
        self.change("write", is_durable, |change, open| {
            heads.clear();
            for (entry, event) in group {
                let head = match heads.entry(entry.row) {
                    std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                    std::collections::hash_map::Entry::Vacant(new) => {
                        let is_ours = table::epoch(change, entry.row)? == Some(entry.epoch);
                        let known = open.get(&entry.row).filter(|_| is_ours);
                        new.insert((entry.clone(), known.map(|open| open.head.clone())))
                    }
                };
                if let (_, Some(head)) = head {
                    table::insert(change, entry.row, event)?;
                    head.apply(event);
                }
            }
            heads
                .values()
                .filter_map(|(_, head)| head.as_ref())
                .try_for_each(|head| table::update(change, head))
        })?;
        for (entry, head) in heads.into_values() {
            let Some(head) = head else {
                let (path, session) = (self.path.display(), &entry.session);
                entry.fail(format!("{path}: session {session} was taken over or deleted by somebody else"));
                continue;
            };
            let last = head.position.last;
            if let Some(open) = self.open.get_mut(&entry.row) {
                open.head = head;
            }
            entry.commit(last);
        }
        Ok(())
    }

    /// A transaction, tried again while another process is in the way. A durable one is on the disk when this returns.
    fn change<T>(
        &mut self,
        what: &'static str,
        is_durable: bool,
        mut change: impl FnMut(&Transaction<'_>, &HashMap<i64, Open>) -> rusqlite::Result<T>,
    ) -> Result<T, JournalError> {
        let Self { connection, open, path, .. } = self;
        let mut attempt = || {
            connection.pragma_update(None, "synchronous", if is_durable { "FULL" } else { "NORMAL" })?;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = change(&transaction, open)?;
            transaction.commit()?;
            Ok::<_, rusqlite::Error>(done)
        };
        let mut result = attempt();
        for _ in 1..ATTEMPTS {
            match &result {
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                    result = attempt()
                }
                _ => break,
            }
        }
        result.map_err(JournalError::store(what, &*path))
    }

    fn has_open(&self, session: &SessionId) -> bool {
        self.open.values().any(|open| open.session == *session)
    }

    fn is_open(&self, session: &SessionId) -> Result<bool, JournalError> {
        let Some((row, _)) = self.row_of(session)? else { return Ok(false) };
        match self.lock(row, session) {
            Ok(_) => Ok(false),
            Err(JournalError::Busy { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Reads only the row's number and whether it has events, so that a session with a damaged row can be deleted.
    fn row_of(&self, session: &SessionId) -> Result<Option<(i64, bool)>, JournalError> {
        table::row_of(&self.connection, session).map_err(JournalError::store("read", &*self.path))
    }

    /// What becomes of each session; an error if the file itself can't be changed.
    fn open(&mut self, sessions: &[SessionId]) -> Result<Vec<Result<Opened, JournalError>>, JournalError> {
        if self.is_closed {
            return Err(JournalError::Closed);
        }
        let rows = self.change("write", false, |change, _| {
            let row = |session| {
                table::create(change, session)?;
                Ok(table::head(change, session)?.map_or(0, |head| head.row))
            };
            sessions.iter().map(row).collect::<rusqlite::Result<Vec<_>>>()
        })?;
        let locks: Vec<_> =
            rows.iter().zip(sessions).map(|(row, session)| self.lock(*row, session)).collect();
        let heads = self.change("write", true, |change, _| {
            let take = |((row, session), lock): ((&i64, &SessionId), &Result<_, _>)| {
                if lock.is_err() {
                    return Ok(None);
                }
                let epoch = table::take_over(change, *row)?;
                // What another process wrote before it gave the lock up.
                Ok(table::head(change, session)?.map(|head| Head { epoch, ..head }))
            };
            rows.iter().zip(sessions).zip(&locks).map(take).collect::<rusqlite::Result<Vec<_>>>()
        })?;
        let opened = sessions.iter().zip(locks).zip(heads);
        Ok(opened.map(|((session, lock), head)| self.opened(session, lock?, head)).collect())
    }

    fn opened(
        &mut self,
        session: &SessionId,
        lock: Option<Lock>,
        head: Option<Head>,
    ) -> Result<Opened, JournalError> {
        let session = session.clone();
        let Some(head) = head else { return Err(JournalError::Unknown { session }) };
        let position = head.position.clone();
        let entry = Entry::new(session.clone(), head.row, head.epoch, position.last);
        self.open.insert(head.row, Open { session, head, _lock: lock });
        Ok((Arc::new(entry), position))
    }

    fn lock(&self, row: i64, session: &SessionId) -> Result<Option<Lock>, JournalError> {
        if self.open.contains_key(&row) {
            return Err(JournalError::Busy { session: session.clone() });
        }
        Lock::take(&self.lock_file(row), session)
    }

    fn lock_file(&self, row: i64) -> PathBuf {
        let mut directory = self.path.clone().into_os_string();
        directory.push(".locks");
        PathBuf::from(directory).join(row.to_string())
    }

    fn claim(&mut self, claim: &Claim) -> Result<Claimed, JournalError> {
        if self.is_closed {
            return Err(JournalError::Closed);
        }
        self.change("write", true, |change, _| {
            let earlier = table::claim(change, claim)?;
            Ok(earlier.map_or(Claimed::New, |earlier| claim.meets(&earlier)))
        })
    }

    fn keep(&mut self, session: &SessionId, checkpoint: &Checkpoint) -> Result<(), JournalError> {
        if self.is_closed {
            return Err(JournalError::Closed);
        }
        self.change("write", false, |change, _| table::keep_checkpoint(change, session, checkpoint))
    }

    fn delete(&mut self, session: &SessionId) -> Result<bool, JournalError> {
        let Some((row, has_events)) = self.row_of(session)? else { return Ok(false) };
        let _lock = self.lock(row, session)?;
        self.change("write", true, |change, _| table::delete(change, row, session))?;
        // Numbers of rows are not used again, so no other process will look for this file.
        let _ = std::fs::remove_file(self.lock_file(row));
        Ok(has_events)
    }

    fn prune(&mut self, session: &SessionId, through: u64) -> Result<u64, JournalError> {
        let first = self.change("write", false, |change, _| table::prune(change, session, through))?;
        first.ok_or_else(|| JournalError::Unknown { session: session.clone() })
    }

    /// Everything committed so far goes to the disk: a durable commit syncs the whole log.
    fn flush(&mut self) -> Result<(), JournalError> {
        self.change("sync", true, |change, _| table::sign(change, schema::PROGRAM))
    }

    fn close(&mut self) -> Result<(), JournalError> {
        self.is_closed = true;
        self.flush()?;
        // So that the file alone has everything, if nobody else is at it.
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        Ok(())
    }
}
