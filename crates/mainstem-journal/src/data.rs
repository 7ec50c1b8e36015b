//! Data that is stored beside the events of sessions.

use std::{ops::Range, time::Duration};

/// The time for which data of a session that has not begun is stored at least: a day.
pub const DATA_WAITS: Duration = Duration::from_secs(24 * 60 * 60);

/// The limit of a tenant's data in sessions that have not begun, in bytes: 128 MiB.
pub const MAX_WAITING_DATA: u64 = 128 << 20;

/// The range of all bytes, for [`Journal::data`](crate::Journal::data).
pub const WHOLE: Range<u64> = 0..u64::MAX;
