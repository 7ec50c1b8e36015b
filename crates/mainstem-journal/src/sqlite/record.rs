//! The record of an open session.

use std::{sync::Arc, task::Waker};

use futures_util::{FutureExt, future::BoxFuture};
use mainstem_event::{AgentEvent, Page, Position, Record};
use mainstem_message::SessionId;

use super::{
    PAGE,
    op::{Op, Opened},
    table,
    threads::Threads,
};
use crate::backend::{Progress, Row};

/// An open session, for the writer and the record.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) session: SessionId,
    pub(super) row: i64,
    /// The fence: only the last opener of the session writes it.
    pub(super) epoch: i64,
    pub(super) progress: Progress,
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
        self.entry.progress.committed()
    }

    fn failure(&self) -> Option<Arc<str>> {
        self.entry.progress.failure().cloned()
    }

    fn watch(&self, waker: Waker) {
        self.entry.progress.watch(waker);
    }

    fn read(&self, from: u64, through: u64) -> BoxFuture<'static, Page> {
        let entry = self.entry.clone();
        let read = move |connection: &_| {
            let rows = table::page(connection, entry.row, from, through, PAGE)?;
            Ok(Row::page(&entry.session, &rows, through, PAGE))
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
