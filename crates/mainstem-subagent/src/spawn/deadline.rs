//! How long a parent waits, not counting the time during which its run is not polled.

use std::time::Duration;

use tokio::time::sleep;

/// The shortest slice that is measured.
const FINEST: Duration = Duration::from_millis(10);

/// Time that passes only while it is polled.
///
/// It is cut into slices of a thirtieth of the whole; a stretch without a poll counts as one slice
/// at most.
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

    /// Waits until the time is over.
    ///
    /// # Cancel safety
    /// Dropping it loses a slice at most; it can be awaited again.
    pub(crate) async fn over(&mut self) {
        while self.pass().await.is_some() {}
    }

    /// Waits for a slice and returns its length; `None` when the time is over.
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
