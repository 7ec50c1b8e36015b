//! Stores of task records.

mod file;
mod memory;
mod scoped;

use std::sync::Arc;

use async_trait::async_trait;
use mainstem_event::{TaskStatus, Timestamp};
use mainstem_message::{SessionId, TaskId};

pub use self::{file::FileTaskStore, memory::MemoryTaskStore, scoped::ScopedTaskStore};
use crate::{ExecutorId, TaskChange, TaskError, TaskRecord};

/// Stores the records of tasks and the leases of executors.
///
/// Every change is atomic and recorded when the call returns. Many processes may share a store;
/// then [`is_shared`](Self::is_shared) returns `true`, and executors poll it for cancel requests.
/// `mainstem_testing::task_store` is the contract as a test suite.
#[async_trait]
pub trait TaskStore: Send + Sync + 'static {
    /// Stores a new record.
    ///
    /// # Errors
    /// [`TaskError::Exists`], or if it can't be stored.
    async fn create(&self, record: TaskRecord) -> Result<(), TaskError>;

    /// Changes a record, as [`TaskRecord::apply`] does, if it is as expected. Returns the changed
    /// record.
    ///
    /// # Errors
    /// [`TaskError::Unknown`], [`Conflict`](TaskError::Conflict), [`Fenced`](TaskError::Fenced),
    /// [`Illegal`](TaskError::Illegal), or if it can't be stored; the record stays as it was.
    async fn update(
        &self,
        id: &TaskId,
        expected: Expected,
        change: TaskChange,
        now: Timestamp,
    ) -> Result<TaskRecord, TaskError>;

    /// Returns the record of a task; `None` if there is none.
    ///
    /// # Errors
    /// If it can't be read.
    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, TaskError>;

    /// Returns records, oldest first.
    ///
    /// # Errors
    /// If they can't be read.
    async fn list(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, TaskError>;

    /// Removes a record. Returns its last state.
    ///
    /// # Errors
    /// [`TaskError::Unknown`], or if it can't be removed; the record stays.
    async fn remove(&self, id: &TaskId) -> Result<TaskRecord, TaskError>;

    /// Records that an executor is alive, and counts as alive until then.
    ///
    /// # Errors
    /// If it can't be recorded.
    async fn renew(&self, executor: &ExecutorId, until: Timestamp) -> Result<(), TaskError>;

    /// Returns the end of an executor's lease; `None` if the executor never had one, has released
    /// it, or if the store can tell that the executor's process has ended.
    ///
    /// # Errors
    /// If it can't be read.
    async fn lease(&self, executor: &ExecutorId) -> Result<Option<Timestamp>, TaskError>;

    /// Ends an executor's lease.
    ///
    /// # Errors
    /// If it can't be recorded; the lease then ends by itself.
    async fn release(&self, executor: &ExecutorId) -> Result<(), TaskError>;

    /// Returns `true` if other processes may change records as well.
    fn is_shared(&self) -> bool;
}

#[async_trait]
impl<S: TaskStore + ?Sized> TaskStore for Arc<S> {
    async fn create(&self, record: TaskRecord) -> Result<(), TaskError> {
        (**self).create(record).await
    }

    async fn update(
        &self,
        id: &TaskId,
        expected: Expected,
        change: TaskChange,
        now: Timestamp,
    ) -> Result<TaskRecord, TaskError> {
        (**self).update(id, expected, change, now).await
    }

    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, TaskError> {
        (**self).get(id).await
    }

    async fn list(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, TaskError> {
        (**self).list(filter).await
    }

    async fn remove(&self, id: &TaskId) -> Result<TaskRecord, TaskError> {
        (**self).remove(id).await
    }

    async fn renew(&self, executor: &ExecutorId, until: Timestamp) -> Result<(), TaskError> {
        (**self).renew(executor, until).await
    }

    async fn lease(&self, executor: &ExecutorId) -> Result<Option<Timestamp>, TaskError> {
        (**self).lease(executor).await
    }

    async fn release(&self, executor: &ExecutorId) -> Result<(), TaskError> {
        (**self).release(executor).await
    }

    fn is_shared(&self) -> bool {
        (**self).is_shared()
    }
}

/// What a record must be for a change to be made. By default anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expected {
    /// Its version: no other writer has changed it.
    pub version: Option<u64>,
    /// Its fence: no other executor has it.
    pub fence: Option<u64>,
}

impl Expected {
    /// Returns an expectation that every record meets.
    pub fn any() -> Self {
        Self::default()
    }

    /// Expects the version that was read.
    pub fn version(version: u64) -> Self {
        Self { version: Some(version), fence: None }
    }

    /// Expects the same executor, at any version.
    pub fn fence(fence: u64) -> Self {
        Self { version: None, fence: Some(fence) }
    }

    /// Checks a record, as each store does before it changes one.
    ///
    /// # Errors
    /// [`Fenced`](TaskError::Fenced) if another executor has it, [`Conflict`](TaskError::Conflict)
    /// if it has another version.
    pub fn check(self, record: &TaskRecord) -> Result<(), TaskError> {
        let id = || record.id.clone();
        if self.fence.is_some_and(|fence| fence != record.fence) {
            return Err(TaskError::Fenced { id: id() });
        }
        match self.version {
            Some(version) if version != record.version => {
                Err(TaskError::Conflict { id: id(), version: record.version })
            }
            _ => Ok(()),
        }
    }
}

/// Which records to list. By default all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskFilter {
    /// Those of this root session.
    pub root: Option<SessionId>,
    /// Those whose parent has this session of its own.
    pub parent: Option<SessionId>,
    /// Those of this status.
    pub status: Option<TaskStatus>,
    /// Whether only those that are [resumable](TaskRecord::is_resumable) and not over.
    pub resumable: bool,
}

impl TaskFilter {
    /// Returns all tasks.
    pub fn all() -> Self {
        Self::default()
    }

    /// Returns the tasks below a root session.
    pub fn of_root(root: SessionId) -> Self {
        Self { root: Some(root), ..Self::default() }
    }

    /// Returns the tasks of the agent whose own session this is.
    pub fn of_parent(parent: SessionId) -> Self {
        Self { parent: Some(parent), ..Self::default() }
    }

    /// Returns the tasks that another executor can continue, if theirs has ended.
    pub fn resumable() -> Self {
        Self { resumable: true, ..Self::default() }
    }

    /// Selects only tasks of this status.
    #[must_use]
    pub fn with_status(mut self, status: TaskStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Returns `true` if the filter selects a record.
    pub fn matches(&self, record: &TaskRecord) -> bool {
        self.root.as_ref().is_none_or(|root| *root == record.root_session_id)
            && self.parent.as_ref().is_none_or(|parent| *parent == record.parent_session_id)
            && self.status.is_none_or(|status| status == record.status)
            && (!self.resumable || record.is_resumable && !record.is_over())
    }
}

/// Changes a record that is in memory. Returns it.
fn change(
    record: Option<&mut TaskRecord>,
    id: &TaskId,
    expected: Expected,
    change: TaskChange,
    now: Timestamp,
) -> Result<TaskRecord, TaskError> {
    let record = record.ok_or_else(|| TaskError::Unknown { id: id.clone() })?;
    expected.check(record)?;
    record.apply(change, now)?;
    Ok(record.clone())
}

/// Sorts records, oldest first.
fn sort(records: &mut [TaskRecord]) {
    records.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
}
