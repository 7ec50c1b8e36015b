//! How long data waits for its session.

use std::time::Duration;

/// How long data is stored at least whose session does not begin: a day.
pub const DATA_WAITS: Duration = Duration::from_secs(24 * 60 * 60);
