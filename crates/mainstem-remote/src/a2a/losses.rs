//! How often, and after which pause, a stream that was lost is requested again. Pure, but for the
//! clock.

use std::time::Duration;

use tokio::time::Instant;

use crate::http::{INTERVAL, RETRIES};

/// A stream that has lasted so long was cut on its way, as proxies do; so it does not count among
/// those that are lost in a row, also if it said nothing.
const STEADY: Duration = Duration::from_secs(10);

/// The streams that were lost in a row.
#[derive(Debug)]
pub(super) struct Losses {
    count: u32,
    /// When the latest stream was requested.
    begun: Instant,
}

impl Losses {
    /// None.
    pub(super) fn new() -> Self {
        Self { count: 0, begun: Instant::now() }
    }

    /// Notes that a stream is requested.
    pub(super) fn begin(&mut self) {
        self.begun = Instant::now();
    }

    /// Notes that the stream has had something new.
    pub(super) fn forget(&mut self) {
        self.count = 0;
    }

    /// Notes that the stream is lost; returns `false` if it is not to be requested again.
    pub(super) fn add(&mut self) -> bool {
        self.count = if self.begun.elapsed() < STEADY { self.count + 1 } else { 1 };
        self.count <= RETRIES
    }

    /// Returns the pause before the next request.
    pub(super) fn pause(&self) -> Duration {
        INTERVAL * self.count.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the pauses before the further requests for a stream: each stream lasts for some
    /// seconds, and `!` stands for something new in it. At the end it is given up, or not.
    async fn check(streams: &str, pauses: &[u64], is_given_up: bool) {
        let (mut losses, mut paused, mut goes_on) = (Losses::new(), Vec::new(), true);
        for stream in streams.split(' ') {
            losses.begin();
            tokio::time::advance(Duration::from_secs(stream.trim_end_matches('!').parse().unwrap())).await;
            if stream.ends_with('!') {
                losses.forget();
            }
            goes_on = losses.add();
            paused.push(losses.pause().as_secs());
        }
        assert_eq!((&*paused, !goes_on), (pauses, is_given_up), "{streams}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_says_nothing_again_and_again_is_given_up() {
        check("0 0 0 0 0", &[0, 1, 2, 3, 4], false).await;
        check("0 0 0 0 0 0", &[0, 1, 2, 3, 4, 5], true).await;
        check("0 0 0! 0 0 0 0", &[0, 1, 0, 1, 2, 3, 4], false).await;
        // A proxy that cuts a silent stream each minute.
        check("60 60 60 60 60 60 60 60", &[0; 8], false).await;
        check("0 0 30 0 0", &[0, 1, 0, 1, 2], false).await;
    }
}
