//! Decides whether a service is called, from the outcome of the last calls. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// Closed, open, or half open: open but for one call.
#[derive(Debug, Default)]
pub(super) struct Circuit {
    /// Failures in a row.
    failures: u32,
    /// The end of the pause, if the circuit is open.
    open_until: Option<Instant>,
    /// Whether a call probes the service.
    is_trying: bool,
    /// How often it was opened. The outcome of a call that began before the latest opening is
    /// ignored.
    opened: u64,
}

/// The permission for one call.
#[derive(Debug)]
pub(super) struct Pass {
    opened: u64,
    tries: bool,
}

impl Circuit {
    /// Returns permission, or the time to ask again: after `soon` if another call probes the
    /// service.
    pub(super) fn admit(&mut self, now: Instant, soon: Duration) -> Result<Pass, Instant> {
        let Some(until) = self.open_until else { return Ok(Pass { opened: self.opened, tries: false }) };
        if self.is_trying {
            return Err(now + soon);
        }
        if now < until {
            return Err(until);
        }
        self.is_trying = true;
        Ok(Pass { opened: self.opened, tries: true })
    }

    pub(super) fn succeeded(&mut self, pass: Pass) {
        if pass.opened == self.opened {
            (self.failures, self.open_until, self.is_trying) = (0, None, false);
        }
    }

    pub(super) fn failed(&mut self, pass: Pass, most: u32, until: Instant) {
        if pass.opened != self.opened {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if pass.tries || self.failures >= most {
            (self.open_until, self.is_trying) = (Some(until), false);
            self.opened += 1;
        }
    }

    /// Notes that the call was dropped with its outcome open.
    pub(super) fn gave_up(&mut self, pass: Pass, now: Instant) {
        if pass.tries && pass.opened == self.opened {
            (self.open_until, self.is_trying) = (Some(now), false);
        }
    }
}
