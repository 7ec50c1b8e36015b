//! Messages to an agent whose turn is running.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mainstem_message::Message;
use tokio::sync::Notify;

/// The messages that the agent reads before its next model call.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    notes: Mutex<Notes>,
    bell: Notify,
}

#[derive(Debug, Default)]
struct Notes {
    /// What earlier turns have not read.
    unread: Vec<Arc<Message>>,
    waiting: Vec<Arc<Message>>,
    /// One of them interrupts the present model call.
    interrupts: bool,
}

impl Inbox {
    pub(crate) fn put(&self, message: Arc<Message>, interrupts: bool) {
        let mut notes = self.lock();
        notes.waiting.push(message);
        notes.interrupts |= interrupts;
        drop(notes);
        self.bell.notify_one();
    }

    pub(crate) fn take(&self) -> Vec<Arc<Message>> {
        let notes = mem::take(&mut *self.lock());
        [notes.unread, notes.waiting].concat()
    }

    /// Notes that a turn has ended: what it has not read is for the next one.
    pub(crate) fn end_turn(&self) {
        let mut notes = self.lock();
        let waiting = mem::take(&mut notes.waiting);
        notes.unread.extend(waiting);
        notes.interrupts = false;
    }

    /// Takes what earlier turns have not read.
    pub(crate) fn take_unread(&self) -> Vec<Arc<Message>> {
        mem::take(&mut self.lock().unread)
    }

    pub(crate) fn is_empty(&self) -> bool {
        let notes = self.lock();
        notes.unread.is_empty() && notes.waiting.is_empty()
    }

    /// Waits for a message that interrupts the present model call.
    pub(crate) async fn interrupted(&self) {
        while !self.lock().interrupts {
            self.bell.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
