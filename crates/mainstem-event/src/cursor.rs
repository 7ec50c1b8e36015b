//! A reader of the session log.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;

use crate::{AgentEvent, SessionLog, session_log::ReaderId};

/// Reads a session's events in order, from some number on.
///
/// It never ends by itself: a session may always go on. It has no [`AgentEvent`] twice and leaves none out; where the ring has passed it
/// by, one [`Gap`](crate::EventKind::Gap) says exactly what is missing.
///
/// Dropping a cursor of an observer changes nothing. Dropping the caller's lets waiting producers go on.
#[must_use = "a cursor does nothing unless polled"]
pub struct Cursor {
    log: Arc<SessionLog>,
    reader: ReaderId,
}

impl Cursor {
    pub(crate) fn new(log: Arc<SessionLog>, reader: ReaderId) -> Self {
        Self { log, reader }
    }

    /// The number of the event that comes next.
    pub fn next_seq(&self) -> u64 {
        self.log.lock().next_of(self.reader)
    }

    /// The next event, if it is there. Does not wait, and undoes a pending poll: whoever waits must poll again.
    pub fn try_next(&mut self) -> Option<AgentEvent> {
        self.log.read(self.reader, None)
    }
}

impl Stream for Cursor {
    type Item = AgentEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        match self.log.read(self.reader, Some(cx.waker())) {
            Some(event) => Poll::Ready(Some(event)),
            None => Poll::Pending,
        }
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
