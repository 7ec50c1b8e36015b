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
        mem::take(&mut *self.lock()).waiting
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
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
