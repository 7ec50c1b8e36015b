//! A clock that begins at a fixed time and goes with tokio's.

use std::sync::OnceLock;

use mainstem_event::{Clock, Timestamp};
use tokio::time::Instant;

/// Begins at 2026-01-01T00:00:00Z with its first use, and advances with tokio's clock: with
/// `start_paused`, only while all tasks wait.
#[derive(Debug, Default)]
pub struct FakeClock(OnceLock<Instant>);

/// 2026-01-01T00:00:00Z, in microseconds.
const START: u64 = 1_767_225_600_000_000;

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        let now = Instant::now();
        let passed = now.duration_since(*self.0.get_or_init(|| now));
        Timestamp::from_micros(START + u64::try_from(passed.as_micros()).unwrap_or(u64::MAX - START))
    }
}
