//! A reader of the session log.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
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
    is_caller: bool,
}

impl Cursor {
    pub(crate) fn new(log: Arc<SessionLog>, reader: ReaderId, is_caller: bool) -> Self {
        Self { log, reader, is_caller }
    }

    /// The number of the event that comes next.
    pub fn next_seq(&self) -> u64 {
        self.log.lock().next_of(self.reader)
    }

    /// The next event, if it is there. Does not wait and is not woken.
    pub fn try_next(&mut self) -> Option<AgentEvent> {
        self.read(None)
    }

    fn read(&self, waker: Option<&Waker>) -> Option<AgentEvent> {
        let mut state = self.log.lock();
        let event = state.read(self.reader);
        let granted = match (&event, waker) {
            (Some(event), _) if self.is_caller => self.log.advance(&mut state, event.seq + 1),
            (None, Some(waker)) => {
                state.park(self.reader, waker);
                None
            }
            _ => None,
        };
        drop(state);
        granted.into_iter().for_each(Waker::wake);
        event
    }
}

impl Stream for Cursor {
    type Item = AgentEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        match self.read(Some(cx.waker())) {
            Some(event) => Poll::Ready(Some(event)),
            None => Poll::Pending,
        }
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        let mut state = self.log.lock();
        state.remove_reader(self.reader);
        let waiting = if self.is_caller { self.log.detach(&mut state) } else { Vec::new() };
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("next", &self.next_seq()).finish_non_exhaustive()
    }
}
