//! Whether a service is asked: decided from how the last calls went, without waiting.

use std::time::Duration;

use tokio::time::Instant;

/// Closed, open, or open but for one call that tries.
#[derive(Debug, Default)]
pub(super) struct Circuit {
    /// In a row.
    failures: u32,
    /// Until when no call is made, if the circuit is open.
    open_until: Option<Instant>,
    /// Whether a call is on its way to see if the service is back.
    is_trying: bool,
    /// Of how many openings a call knows; what began before the latest says nothing about now.
    opened: u64,
}

/// Leave to call once.
#[derive(Debug)]
pub(super) struct Pass {
    opened: u64,
    tries: bool,
}

impl Circuit {
    /// Leave to call, or when to ask again: `soon` if it is being tried whether the service is
    /// back.
    pub(super) fn ask(&mut self, now: Instant, soon: Duration) -> Result<Pass, Instant> {
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

    /// The call was dropped before it was known how it goes.
    pub(super) fn gave_up(&mut self, pass: Pass, now: Instant) {
        if pass.tries && pass.opened == self.opened {
            (self.open_until, self.is_trying) = (Some(now), false);
        }
    }
}
