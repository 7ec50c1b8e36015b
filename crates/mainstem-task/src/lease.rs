//! Executors, and how long their leases last.

use std::{fmt, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long an executor's lease lasts. It is renewed every third of this time. A task is lost when
/// its executor's lease ends, or earlier, when the store can tell that the executor's process has
/// ended.
pub const LEASE_DURATION: Duration = Duration::from_secs(30);

/// The interval of renewals: two may fail before the lease ends.
pub(crate) const RENEWAL_INTERVAL: Duration = Duration::from_millis(LEASE_DURATION.as_millis() as u64 / 3);

/// A process that executes tasks, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ExecutorId(#[schemars(with = "String")] Arc<str>);

impl ExecutorId {
    /// Creates an id of any text.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExecutorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
