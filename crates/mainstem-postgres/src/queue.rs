//! The queue of the writer, and when a group of requests is due.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use mainstem_event::AgentEvent;
use mainstem_journal::{
    JournalError,
    backend::{Request, Waiting},
};
use mainstem_message::SessionId;
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, timeout_at},
};

use crate::record::Entry;

/// How long an event waits for others to be committed with it, unless one of them is durable.
const COMMIT_AFTER: Duration = Duration::from_millis(25);

/// The maximum number of requests in a transaction.
const GROUP: usize = 4096;

/// A request to the writer.
pub(crate) enum Op {
    Append(Arc<Entry>, AgentEvent),
    /// The record of a session was dropped.
    Release(Arc<Entry>),
    /// Answered once everything before it is committed, of the session's tenant or of all; with
    /// `false` if the database can't be reached.
    Barrier(Option<SessionId>, oneshot::Sender<bool>),
    /// Nothing is written after it.
    Close(oneshot::Sender<Result<(), JournalError>>),
}

impl Request for Op {
    fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Append(entry, _) | Self::Release(entry) => Some(&entry.session),
            Self::Barrier(session, _) => session.as_ref(),
            Self::Close(_) => None,
        }
    }

    fn is_urgent(&self) -> bool {
        match self {
            Self::Append(_, event) => event.kind.is_durable(),
            Self::Release(_) | Self::Barrier(..) | Self::Close(_) => true,
        }
    }

    /// Every commit is: what a reader on another node has seen must survive.
    fn is_durable(&self) -> bool {
        true
    }
}

/// The length is bounded by the logs' `settle`: producers wait when their log's record is behind.
pub(crate) struct Queue {
    waiting: Mutex<Waiting<Op>>,
    filled: Notify,
}

impl Default for Queue {
    fn default() -> Self {
        Self { waiting: Mutex::new(Waiting::new(GROUP)), filled: Notify::new() }
    }
}

impl Queue {
    pub(crate) fn push(&self, op: Op) {
        let is_news = self.lock().push(op);
        if is_news {
            self.filled.notify_one();
        }
    }

    /// Ends the queue: no request follows.
    pub(crate) fn end(&self) {
        self.lock().end();
        self.filled.notify_one();
    }

    /// Waits until a group is due, and takes it; `None` after the last request. A group ends with a
    /// close.
    pub(crate) async fn next(&self) -> Option<Vec<Op>> {
        while self.lock().is_empty() {
            if self.lock().is_over() {
                return None;
            }
            self.filled.notified().await;
        }
        let due = Instant::now() + COMMIT_AFTER;
        while !self.lock().is_due() {
            if timeout_at(due, self.filled.notified()).await.is_err() {
                break;
            }
        }
        Some(self.take())
    }

    fn take(&self) -> Vec<Op> {
        let mut waiting = self.lock();
        let mut group = Vec::new();
        while group.len() < GROUP && !matches!(group.last(), Some(Op::Close(_))) {
            match waiting.pop(|_| true) {
                Some(op) => group.push(op),
                None => break,
            }
        }
        group
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<Op>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
