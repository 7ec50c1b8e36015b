//! Which sessions have new events, as the nodes tell each other.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

/// The channel of the database.
pub(crate) const CHANNEL: &str = "mainstem_events";

/// The most bytes of a notice.
const LONGEST: usize = 7900;

/// A notice about all sessions.
const ALL: &str = "*";

/// Returns the notice that these sessions, by number, have new events.
pub(crate) fn notice(sessions: impl IntoIterator<Item = i64>) -> String {
    let mut text = String::new();
    for session in sessions {
        text.push_str(&session.to_string());
        text.push(' ');
        if text.len() > LONGEST {
            return ALL.to_owned();
        }
    }
    text.pop();
    text
}

/// Readers that wait for events of sessions that other nodes write.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    watched: Mutex<HashMap<i64, watch::Sender<()>>>,
}

impl Notices {
    /// Returns a receiver that is told of each notice about the session from now on.
    pub(crate) fn subscribe(&self, session: i64) -> watch::Receiver<()> {
        self.lock().entry(session).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    /// Tells the readers of a notice.
    pub(crate) fn tell(&self, notice: &str) {
        let mut watched = self.lock();
        watched.retain(|_, sender| sender.receiver_count() > 0);
        if notice == ALL {
            return watched.values().for_each(|sender| _ = sender.send(()));
        }
        for session in notice.split(' ').filter_map(|session| session.parse().ok()) {
            watched.get(&session).into_iter().for_each(|sender| _ = sender.send(()));
        }
    }

    /// Tells all readers: notices may have been missed.
    pub(crate) fn tell_all(&self) {
        self.tell(ALL);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, watch::Sender<()>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
