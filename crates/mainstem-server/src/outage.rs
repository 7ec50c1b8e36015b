//! The log lines of what fails again and again while a database or a file is away.

use std::{fmt::Display, time::Duration};

use tokio::time::Instant;

/// How often a failure that goes on is logged.
const INTERVAL: Duration = Duration::from_secs(10);

/// Logs the failures of work that is repeated: the first one, then one each ten seconds, and that
/// it succeeds again.
pub(crate) struct Outage {
    what: &'static str,
    logged: Option<Instant>,
}

impl Outage {
    /// Creates one for work that is called this, as a verb with its object.
    pub(crate) fn of(what: &'static str) -> Self {
        Self { what, logged: None }
    }

    /// Returns what was read; `None` after a failure.
    pub(crate) fn told<T, E: Display>(&mut self, read: Result<T, E>) -> Option<T> {
        match read {
            Ok(read) => {
                if self.logged.take().is_some() {
                    tracing::info!("can {} again", self.what);
                }
                Some(read)
            }
            Err(error) => {
                if self.logged.is_none_or(|at| at.elapsed() >= INTERVAL) {
                    tracing::warn!(%error, "can't {}; trying again", self.what);
                    self.logged = Some(Instant::now());
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{INTERVAL, Outage};

    #[tokio::test(start_paused = true)]
    async fn a_failure_that_goes_on_is_logged_at_intervals() {
        let mut outage = Outage::of("read it");
        let mut logged = async |read: Result<(), &str>| {
            let before = outage.logged;
            outage.told(read);
            tokio::time::advance(INTERVAL / 2).await;
            (before != outage.logged, outage.logged.is_some())
        };
        let expected = [(true, true), (false, true), (true, true), (false, true)];
        for expected in expected {
            assert_eq!(logged(Err("no")).await, expected);
        }
        assert_eq!(logged(Ok(())).await, (true, false));
        assert_eq!(logged(Err("no")).await, (true, true));
    }
}
