//! Executors, and how long their leases last.

use std::{fmt, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long an executor's lease lasts. It is renewed three times as often. A task is lost when its
/// executor's lease ends, or earlier, when the store can tell that the executor's process has
/// ended.
pub const LEASE: Duration = Duration::from_secs(30);

/// How often a lease is renewed: two renewals may fail before it ends.
pub(crate) const RENEW: Duration = Duration::from_millis(LEASE.as_millis() as u64 / 3);

/// A process that executes tasks, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ExecutorId(#[schemars(with = "String")] Arc<str>);

impl ExecutorId {
    /// Takes any string as it is.
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
