//! When each recorded piece is played.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use mainstem_event::Timestamp;
use tokio::time::{Instant, sleep_until};

/// Gives each piece a time of its own, as it was recorded: whole milliseconds, because tokio's
/// timers have no others, and later than the one before, because pieces of one millisecond have an
/// order, too.
#[derive(Debug)]
pub(super) struct Schedule {
    first: Timestamp,
    last: Option<u64>,
}

impl Schedule {
    pub(super) fn new(first: Timestamp) -> Self {
        Self { first, last: None }
    }

    /// Returns the time of the next piece, since the first event.
    pub(super) fn next(&mut self, at: Timestamp) -> Duration {
        let after = self.last.map_or(0, |last| last + 1);
        let time = at.millis_since(self.first).max(after);
        self.last = Some(time);
        Duration::from_millis(time)
    }
}

/// The time at which a recording began to play; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Stage(Arc<OnceLock<Instant>>);

impl Stage {
    /// Waits until a time of the schedule. The first call begins the play at its time.
    pub(super) async fn until(&self, time: Duration) {
        let now = Instant::now();
        let began = self.0.get_or_init(|| now.checked_sub(time).unwrap_or(now));
        sleep_until(*began + time).await;
    }
}
