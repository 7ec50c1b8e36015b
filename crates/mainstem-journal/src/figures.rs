//! Figures of a journal's writer, for those who watch it.

use std::time::Duration;

/// What a journal has written since it was opened, and what waits. Counts only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// Events that wait to be committed.
    pub waiting: u64,
    /// Transactions that were committed.
    pub commits: u64,
    /// Events that were committed.
    pub events: u64,
    /// How long the commits took, in all.
    pub time: Duration,
    /// Records that have failed: their events after that are not recorded.
    pub failures: u64,
    /// Connections to the database that are open for requests and for writing.
    pub connections: u64,
    /// How long the lease of this process still lasts, if it has one; zero if it is over.
    pub lease: Option<Duration>,
}
