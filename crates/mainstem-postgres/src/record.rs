//! The record of an open session.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};

use futures_util::{FutureExt, future::BoxFuture};
use mainstem_event::{AgentEvent, Page, Position, Record};
use mainstem_journal::backend::{Head, Progress};
use mainstem_message::SessionId;

use crate::{
    node::{Owner, Shared},
    queue::Op,
};

/// An open session, for the writer and the record.
pub(crate) struct Entry {
    pub(crate) session: SessionId,
    /// The session's number in the database.
    pub(crate) no: i64,
    /// The fence: only the last opener of the session writes it.
    pub(crate) epoch: i64,
    pub(crate) progress: Progress,
    head: Mutex<Head>,
}

impl Entry {
    pub(crate) fn new(session: SessionId, no: i64, epoch: i64, head: Head) -> Self {
        let progress = Progress::new(head.position.last);
        Self { session, no, epoch, progress, head: Mutex::new(head) }
    }

    /// Returns what is committed of the session.
    pub(crate) fn head(&self) -> Head {
        self.lock().clone()
    }

    /// Sets what is committed, and wakes the readers.
    pub(crate) fn commit(&self, head: &Head) {
        self.lock().clone_from(head);
        self.progress.commit(head.position.last);
    }

    /// Fails the record: later events are not recorded.
    pub(crate) fn fail(&self, why: &str) {
        self.progress.fail(format!("session {} is no longer recorded: {why}", self.session));
    }

    fn lock(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An opened session, for its caller. Dropping it releases the session.
pub(crate) struct Opened {
    shared: Arc<Shared>,
    entry: Option<Arc<Entry>>,
}

impl Opened {
    pub(crate) fn new(shared: Arc<Shared>, entry: Arc<Entry>) -> Self {
        Self { shared, entry: Some(entry) }
    }

    /// Makes it a record; dropping that releases the session.
    pub(crate) fn into_record(mut self, owner: Arc<Owner>) -> Option<PostgresRecord> {
        let entry = self.entry.take()?;
        let position = entry.head().position;
        Some(PostgresRecord { owner, entry, position })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.entry.take().into_iter().for_each(|entry| self.shared.queue.push(Op::Release(entry)));
    }
}

pub(crate) struct PostgresRecord {
    owner: Arc<Owner>,
    entry: Arc<Entry>,
    position: Position,
}

impl Record for PostgresRecord {
    fn position(&self) -> Position {
        self.position.clone()
    }

    fn append(&self, event: &AgentEvent) {
        self.owner.shared.counts.queued();
        self.owner.shared.queue.push(Op::Append(self.entry.clone(), event.clone()));
    }

    fn committed(&self) -> u64 {
        self.entry.progress.committed()
    }

    fn failure(&self) -> Option<Arc<str>> {
        self.entry.progress.failure().cloned()
    }

    fn watch(&self, waker: Waker) {
        self.entry.progress.watch(waker);
    }

    fn read(&self, from: u64, through: u64) -> BoxFuture<'static, Page> {
        let (owner, entry) = (self.owner.clone(), self.entry.clone());
        let nothing = Page { events: Vec::new(), through };
        async move {
            let read = owner.run(move |shared| shared.page(entry, from, through)).await;
            read.unwrap_or(nothing)
        }
        .boxed()
    }
}

impl Drop for PostgresRecord {
    fn drop(&mut self) {
        self.owner.shared.queue.push(Op::Release(self.entry.clone()));
    }
}
