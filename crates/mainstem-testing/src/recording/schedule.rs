//! When each recorded piece is played.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use mainstem_event::Timestamp;
use tokio::time::{Instant, sleep_until};

/// Gives each piece its time, as it was recorded: whole milliseconds, because tokio's timers have
/// no others.
#[derive(Debug)]
pub(super) struct Schedule {
    first: Timestamp,
    /// The time of the last piece, in milliseconds.
    last: u64,
    /// How many pieces share that time; 0 if the last piece has it for itself.
    sharing: u32,
}

/// The maximum number of pieces that share a time: between two times readers get their turn.
const MAX_SHARING: u32 = 64;

impl Schedule {
    pub(super) fn new(first: Timestamp) -> Self {
        Self { first, last: 0, sharing: 0 }
    }

    /// Returns the time of a piece that others may react to: it is later than the one before, since
    /// pieces of one millisecond have an order, too.
    pub(super) fn next(&mut self, at: Timestamp) -> Duration {
        self.piece(at, true)
    }

    /// Returns the time of a piece of an answer, to which no other agent reacts. It shares the time
    /// of other such pieces, so that many of them take no longer than they did.
    pub(super) fn shared(&mut self, at: Timestamp) -> Duration {
        self.piece(at, false)
    }

    fn piece(&mut self, at: Timestamp, is_alone: bool) -> Duration {
        let is_later = is_alone || self.sharing == 0 || self.sharing == MAX_SHARING;
        let time = at.millis_since(self.first).max(self.last + u64::from(is_later));
        self.sharing = match is_alone {
            true => 0,
            false if time == self.last => self.sharing + 1,
            false => 1,
        };
        self.last = time;
        Duration::from_millis(time)
    }
}

/// When the play began; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Stage(Arc<Mutex<Option<Instant>>>);

impl Stage {
    /// Begins a play.
    pub(super) fn begin(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Waits until a time of the schedule. Without a play, it begins with the first call.
    pub(super) async fn until(&self, time: Duration) {
        let now = Instant::now();
        let began = *self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| now.checked_sub(time).unwrap_or(now));
        sleep_until(began + time).await;
    }
}
