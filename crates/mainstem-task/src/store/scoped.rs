//! A part of a store as a separate store.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use mainstem_event::Timestamp;
use mainstem_message::{SessionId, TaskId, TenantName};

use super::{Expected, TaskFilter, TaskStore};
use crate::{ExecutorId, IllegalChange, TaskChange, TaskError, TaskRecord};

/// A tenant's part of a store, whose tasks and executors other parts can't see. In the store itself
/// the ids of tasks, sessions and executors begin with the tenant's name and a slash.
///
/// [`list`](TaskStore::list) without a session reads the records of all parts.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use mainstem_event::Timestamp;
/// use mainstem_task::{ExecutorId, MemoryTaskStore, ScopedTaskStore, TaskStore};
///
/// let whole: Arc<dyn TaskStore> = Arc::new(MemoryTaskStore::new());
/// let acme = ScopedTaskStore::new(whole.clone(), "acme".parse()?);
/// let other = ScopedTaskStore::new(whole, "other".parse()?);
/// let executor = ExecutorId::new("here");
/// acme.renew(&executor, Timestamp::from_micros(5)).await?;
/// assert_eq!(other.lease(&executor).await?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ScopedTaskStore {
    whole: Arc<dyn TaskStore>,
    tenant: TenantName,
}

impl ScopedTaskStore {
    /// Creates a tenant's part.
    pub fn new(whole: Arc<dyn TaskStore>, tenant: TenantName) -> Self {
        Self { whole, tenant }
    }

    fn inner_executor(&self, id: &ExecutorId) -> ExecutorId {
        ExecutorId::new(format!("{}/{}", self.tenant, id.as_str()))
    }

    fn outer_executor(&self, id: &ExecutorId) -> Option<ExecutorId> {
        let own = id.as_str().strip_prefix(self.tenant.as_str())?.strip_prefix('/')?;
        Some(ExecutorId::new(own))
    }

    fn outer_task(&self, id: TaskId) -> TaskId {
        id.unscoped(&self.tenant).unwrap_or(id)
    }

    fn inner_record(&self, mut record: TaskRecord) -> TaskRecord {
        record.id = record.id.scoped(&self.tenant);
        record.root_session_id = record.root_session_id.scoped(&self.tenant);
        record.parent_session_id = record.parent_session_id.scoped(&self.tenant);
        record.executor = record.executor.map(|executor| self.inner_executor(&executor));
        record
    }

    /// Returns a record with ids without the part's prefix; `None` if it belongs to another part.
    fn outer_record(&self, mut record: TaskRecord) -> Option<TaskRecord> {
        record.id = record.id.unscoped(&self.tenant)?;
        record.root_session_id = record.root_session_id.unscoped(&self.tenant)?;
        record.parent_session_id = record.parent_session_id.unscoped(&self.tenant)?;
        record.executor = record.executor.map(|executor| self.outer_executor(&executor).unwrap_or(executor));
        Some(record)
    }

    /// Converts a result of the store to the ids of the part.
    fn outer_result(
        &self,
        id: &TaskId,
        result: Result<TaskRecord, TaskError>,
    ) -> Result<TaskRecord, TaskError> {
        let record = result.map_err(|error| self.outer_error(error))?;
        self.outer_record(record).ok_or_else(|| TaskError::Unknown { id: id.clone() })
    }

    fn outer_error(&self, error: TaskError) -> TaskError {
        match error {
            TaskError::Unknown { id } => TaskError::Unknown { id: self.outer_task(id) },
            TaskError::NotOver { id, status } => TaskError::NotOver { id: self.outer_task(id), status },
            TaskError::Exists { id } => TaskError::Exists { id: self.outer_task(id) },
            TaskError::Conflict { id, version } => TaskError::Conflict { id: self.outer_task(id), version },
            TaskError::Fenced { id } => TaskError::Fenced { id: self.outer_task(id) },
            TaskError::Illegal(change) => {
                TaskError::Illegal(IllegalChange { id: self.outer_task(change.id), ..change })
            }
            error @ (TaskError::Closed | TaskError::Corrupt { .. } | TaskError::Io { .. }) => error,
        }
    }
}

#[async_trait]
impl TaskStore for ScopedTaskStore {
    async fn create(&self, record: TaskRecord) -> Result<(), TaskError> {
        let created = self.whole.create(self.inner_record(record)).await;
        created.map_err(|error| self.outer_error(error))
    }

    async fn update(
        &self,
        id: &TaskId,
        expected: Expected,
        change: TaskChange,
        now: Timestamp,
    ) -> Result<TaskRecord, TaskError> {
        let change = match change {
            TaskChange::Claim { executor } => TaskChange::Claim { executor: self.inner_executor(&executor) },
            change => change,
        };
        self.outer_result(id, self.whole.update(&id.scoped(&self.tenant), expected, change, now).await)
    }

    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, TaskError> {
        let found =
            self.whole.get(&id.scoped(&self.tenant)).await.map_err(|error| self.outer_error(error))?;
        Ok(found.and_then(|record| self.outer_record(record)))
    }

    async fn list(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, TaskError> {
        let session = |id: &Option<SessionId>| id.as_ref().map(|id| id.scoped(&self.tenant));
        let filter =
            TaskFilter { root: session(&filter.root), parent: session(&filter.parent), ..filter.clone() };
        let found = self.whole.list(&filter).await.map_err(|error| self.outer_error(error))?;
        Ok(found.into_iter().filter_map(|record| self.outer_record(record)).collect())
    }

    async fn remove(&self, id: &TaskId) -> Result<TaskRecord, TaskError> {
        self.outer_result(id, self.whole.remove(&id.scoped(&self.tenant)).await)
    }

    async fn renew(&self, executor: &ExecutorId, until: Timestamp) -> Result<(), TaskError> {
        self.whole.renew(&self.inner_executor(executor), until).await
    }

    async fn lease(&self, executor: &ExecutorId) -> Result<Option<Timestamp>, TaskError> {
        self.whole.lease(&self.inner_executor(executor)).await
    }

    async fn release(&self, executor: &ExecutorId) -> Result<(), TaskError> {
        self.whole.release(&self.inner_executor(executor)).await
    }

    fn is_shared(&self) -> bool {
        self.whole.is_shared()
    }
}

impl fmt::Debug for ScopedTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedTaskStore").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}
