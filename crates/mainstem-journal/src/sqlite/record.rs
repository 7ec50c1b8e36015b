//! The record of an open session.

use std::{
    sync::{Arc, OnceLock, PoisonError, atomic::Ordering},
    task::Waker,
};

use futures_util::{FutureExt, future::BoxFuture};
use mainstem_event::{AgentEvent, Page, Position, Record};
use mainstem_message::SessionId;

use super::{
    PAGE,
    op::{Op, Opened},
    reader, table,
    threads::Threads,
};
use crate::sync::{AtomicU64, Mutex};

/// The state that the writer and the record share.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) session: SessionId,
    pub(super) row: i64,
    /// The fence: only the last opener of the session writes it.
    pub(super) epoch: i64,
    committed: AtomicU64,
    failure: OnceLock<Arc<str>>,
    waker: Mutex<Option<Waker>>,
}

impl Entry {
    pub(super) fn new(session: SessionId, row: i64, epoch: i64, committed: u64) -> Self {
        let committed = AtomicU64::new(committed);
        Self { session, row, epoch, committed, failure: OnceLock::new(), waker: Mutex::default() }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    pub(super) fn commit(&self, seq: u64) {
        self.committed.store(seq, Ordering::Release);
        self.wake();
    }

    pub(super) fn fail(&self, why: String) {
        if self.failure.set(why.into()).is_ok() {
            self.wake();
        }
    }

    fn wake(&self) {
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        waker.into_iter().for_each(Waker::wake);
    }
}

pub(super) struct SqliteRecord {
    threads: Arc<Threads>,
    entry: Arc<Entry>,
    position: Position,
}

impl SqliteRecord {
    pub(super) fn new(threads: Arc<Threads>, opened: Opened) -> Self {
        let (entry, position) = opened.take();
        Self { threads, entry, position }
    }
}

impl Record for SqliteRecord {
    fn position(&self) -> Position {
        self.position.clone()
    }

    fn append(&self, event: &AgentEvent) {
        self.threads.queue().push(Op::Append(self.entry.clone(), event.clone()));
    }

    fn committed(&self) -> u64 {
        self.entry.committed.load(Ordering::Acquire)
    }

    fn failure(&self) -> Option<Arc<str>> {
        self.entry.failure.get().cloned()
    }

    fn watch(&self, waker: Waker) {
        *self.entry.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker);
    }

    fn read(&self, from: u64, through: u64) -> BoxFuture<'static, Page> {
        let entry = self.entry.clone();
        let read = move |connection: &_| {
            let rows = table::page(connection, entry.row, from, through, PAGE)?;
            Ok(reader::page_with_gaps(&entry.session, &rows, through))
        };
        // Events that can't be read are a gap, as dropped ones are.
        let nothing = move |_| Page { events: Vec::new(), through };
        self.threads.read("read", read).map(move |page| page.unwrap_or_else(nothing)).boxed()
    }
}

impl Drop for SqliteRecord {
    fn drop(&mut self) {
        self.threads.queue().push(Op::Release(self.entry.clone()));
    }
}
