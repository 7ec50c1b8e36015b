//! Data that is stored beside the events of sessions.

use std::{ops::Range, time::Duration};

/// How long data is stored at least whose session does not begin: a day.
pub const DATA_WAITS: Duration = Duration::from_secs(24 * 60 * 60);

/// How many bytes of data a tenant has at most whose sessions have not begun: 128 MiB.
pub const MAX_WAITING_DATA: u64 = 128 << 20;

/// The part that is all of it.
pub const WHOLE: Range<u64> = 0..u64::MAX;
