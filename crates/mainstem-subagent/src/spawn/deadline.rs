//! How long a parent waits, not counting the time during which nobody polls its run.

use std::time::Duration;

use tokio::time::sleep;

/// The shortest stretch that is measured.
const FINEST: Duration = Duration::from_millis(10);

/// Time that runs only while it is polled: it is cut into slices, and of a stretch during which
/// nobody polls one slice counts at most, a thirtieth of the whole.
#[derive(Debug)]
pub(crate) struct Deadline {
    left: Duration,
    slice: Duration,
}

impl Deadline {
    pub(crate) fn new(time: Duration) -> Self {
        // In whole milliseconds, as timers are.
        let slice = Duration::from_millis(u64::try_from(time.as_millis() / 30).unwrap_or(u64::MAX));
        Self { left: time, slice: slice.max(FINEST) }
    }

    /// Returns how much time is left.
    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// Resolves when the time is over. Dropping it loses a slice at most, so that it can be waited
    /// for again.
    pub(crate) async fn over(&mut self) {
        while self.pass().await.is_some() {}
    }

    /// Lets a slice pass, and says how long it was; `None` when the time is over.
    pub(crate) async fn pass(&mut self) -> Option<Duration> {
        let part = self.slice.min(self.left);
        if part.is_zero() {
            return None;
        }
        sleep(part).await;
        self.left -= part;
        Some(part)
    }
}
