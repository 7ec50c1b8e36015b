//! How long a call waits for its child. Pure.

use std::time::Duration;

use crate::options::SpawnOptions;

/// The longest wait of a call, whatever the model asks.
pub(crate) const LONGEST: Duration = Duration::from_secs(600);

/// How long a call waits for its child, and what happens then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitTime {
    /// `None` if the call does not wait.
    pub(crate) time: Option<Duration>,
    /// Whether the child is stopped when the time is over; else it goes on in the background.
    pub(crate) must_end: bool,
    /// Whether the model asked for more.
    pub(crate) is_clamped: bool,
}

impl WaitTime {
    /// Returns the wait for the model's `asked` seconds; without them it is the `usual` one. The
    /// caller of the run may forbid background work.
    pub(crate) fn new(asked: Option<u64>, usual: Duration, options: &SpawnOptions) -> Self {
        let asked = asked.map_or(usual, Duration::from_secs);
        let is_background = asked.is_zero() && !options.force_sync;
        let asked = if asked.is_zero() { usual } else { asked };
        Self {
            time: (!is_background).then_some(asked.min(LONGEST)),
            must_end: options.force_sync,
            is_clamped: asked > LONGEST,
        }
    }
}
