//! The log as its readers see it: cursors are added here, read, and removed.

use std::{sync::Arc, task::Waker};

use super::{
    SessionLog,
    reader::{Read, ReaderId},
    state::Wakers,
};
use crate::Cursor;

impl SessionLog {
    /// Returns an observer that begins with the next event.
    pub fn subscribe(self: &Arc<Self>) -> Cursor {
        self.subscribe_from(self.last_seq() + 1)
    }

    /// Returns an observer that begins at `seq` (0 and 1 are the beginning); events that the ring
    /// has dropped come from the record, or are its first [`Gap`](crate::EventKind::Gap).
    pub fn subscribe_from(self: &Arc<Self>, seq: u64) -> Cursor {
        let reader = self.lock().add_reader(seq.max(1), self.recorded.is_some());
        Cursor::new(self.clone(), reader)
    }

    /// Returns an observer that sees only committed events, if there is a record: an event that it
    /// has seen exists after a crash, under the same number. It sees events some milliseconds later
    /// than others. Once the record has failed it ends after the last committed event.
    pub fn committed_from(self: &Arc<Self>, seq: u64) -> Cursor {
        let cursor = self.subscribe_from(seq);
        self.lock().set_committed_only(cursor.reader());
        cursor
    }

    /// Returns an observer that does not wait for a disk: events that the ring has dropped are a
    /// [`Gap`](crate::EventKind::Gap), even if the record has them.
    pub fn recent_from(self: &Arc<Self>, seq: u64) -> Cursor {
        let reader = self.lock().add_reader(seq.max(1), false);
        Cursor::new(self.clone(), reader)
    }

    /// Returns the caller's cursor, which begins with the next event. Producers wait for it, so it
    /// must be read, or dropped.
    ///
    /// A session has one caller at a time: the previous one becomes an observer, and producers that
    /// waited for it are woken.
    pub fn attach(self: &Arc<Self>) -> Cursor {
        let mut state = self.lock();
        let next = state.last + 1;
        let reader = state.add_reader(next, self.recorded.is_some());
        state.set_caller(Some(reader));
        self.ahead.reset(Some(next));
        let waiting = state.queue.grant_all();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        Cursor::new(self.clone(), reader)
    }

    /// Removes a reader that was dropped; if it was the caller, wakes the producers that waited for
    /// it.
    pub(crate) fn remove(&self, id: ReaderId) {
        let mut state = self.lock();
        let mut waiting = Wakers::new();
        if state.is_caller(id) {
            state.set_caller(None);
            self.ahead.reset(None);
            waiting = state.queue.grant_all();
        }
        let reader = state.remove_reader(id);
        drop(state);
        drop(reader);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns the next event of a reader. If there is none, stores the waker, if one is given.
    pub(crate) fn read(&self, reader: ReaderId, waker: Option<&Waker>) -> Read {
        let mut state = self.lock();
        let found = state.read(reader, self.reach());
        let stale = match (&found, waker) {
            (Read::Nothing, Some(waker)) => state.park(reader, waker),
            _ => state.unpark(reader),
        };
        let granted = match (&found, waker) {
            (Read::Event(event), _) if state.is_caller(reader) => {
                self.ahead.read(event);
                self.next_turn(&mut state)
            }
            // Producers whose turn it is may not be polled before another one continues, which
            // their task awaits: a caller that waits lets one more go on, each time it is polled.
            (Read::Nothing, Some(_)) if state.is_caller(reader) && self.is_idle() => state.queue.grant(),
            _ => None,
        };
        drop(state);
        drop(stale);
        granted.into_iter().for_each(Waker::wake);
        found
    }

    /// Notes that a reader has got the record's events up to this.
    pub(crate) fn filled(&self, reader: ReaderId, through: u64) {
        let mut state = self.lock();
        state.filled(reader, through);
        let granted = if state.is_caller(reader) {
            self.ahead.passed(through);
            self.next_turn(&mut state)
        } else {
            None
        };
        drop(state);
        granted.into_iter().for_each(Waker::wake);
    }
}
