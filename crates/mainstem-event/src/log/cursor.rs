//! A reader of the session log.

mod paging;

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use futures_core::Stream;

use self::paging::Paging;
use crate::{
    AgentEvent, SessionLog,
    log::session_log::{Read, ReaderId},
};

/// Reads a session's events in order, from some number on.
///
/// It ends only if it is [limited to committed events](SessionLog::committed_from) and the record
/// fails; otherwise a session may always continue. It yields every [`AgentEvent`] once. Events that
/// the ring has dropped are read from the log's [`Record`](crate::Record), a page at a time and on
/// another thread; events that the record does not have are counted by one
/// [`Gap`](crate::EventKind::Gap).
///
/// Dropping a cursor of an observer changes nothing. Dropping the caller's wakes waiting producers.
#[must_use = "a cursor does nothing unless polled"]
pub struct Cursor {
    log: Arc<SessionLog>,
    reader: ReaderId,
    /// The page, while it reads from the record.
    paging: Option<Box<Paging>>,
}

impl Cursor {
    pub(crate) fn new(log: Arc<SessionLog>, reader: ReaderId) -> Self {
        Self { log, reader, paging: None }
    }

    pub(crate) fn reader(&self) -> ReaderId {
        self.reader
    }

    /// Returns the number of the next event.
    pub fn next_seq(&self) -> u64 {
        let paged = self.paging.as_ref().and_then(|paging| paging.next_seq());
        paged.unwrap_or_else(|| self.log.lock().next_of(self.reader))
    }

    /// Returns `true` if it has read every event, including those that are still hidden from
    /// readers.
    pub fn is_at_end(&self) -> bool {
        self.next_seq() > self.log.last_seq()
    }

    /// Returns its log.
    pub fn log(&self) -> &Arc<SessionLog> {
        &self.log
    }

    /// Returns the next event if it is available. Does not wait, not even for a page of the record,
    /// and undoes a pending poll: a waiting task must poll again.
    pub fn try_next(&mut self) -> Option<AgentEvent> {
        match self.advance(None) {
            Poll::Ready(event) => event,
            Poll::Pending => None,
        }
    }

    /// Returns the next event if it has happened; waits only until it is read from the record or
    /// committed to it. Returns `None` at the end of the log. Dropping the future loses nothing.
    pub async fn at_hand(&mut self) -> Option<AgentEvent> {
        match self.try_next() {
            None if !self.is_at_end() => std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await,
            next => next,
        }
    }

    fn advance(&mut self, waker: Option<&Waker>) -> Poll<Option<AgentEvent>> {
        loop {
            if let Some(paging) = &mut self.paging {
                match paging.poll_next(&self.log, self.reader, waker) {
                    Poll::Ready(None) => self.paging = None,
                    found => return found,
                }
            }
            match self.log.read(self.reader, waker) {
                Read::Event(event) => return Poll::Ready(Some(event)),
                Read::Nothing => return Poll::Pending,
                Read::End => return Poll::Ready(None),
                Read::Fetch { from, through } => {
                    let Some(record) = self.log.record() else { return Poll::Pending };
                    let page = record.read(from, through);
                    self.paging = Some(Box::new(Paging::Asked { from, through, page }));
                }
            }
        }
    }
}

impl Stream for Cursor {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        self.advance(Some(cx.waker()))
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.log.remove(self.reader);
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("next", &self.next_seq()).finish_non_exhaustive()
    }
}
