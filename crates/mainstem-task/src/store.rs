//! Where records are kept.

mod file;
mod memory;
mod scoped;

use async_trait::async_trait;
use mainstem_event::{TaskStatus, Timestamp};
use mainstem_message::{SessionId, TaskId};

pub use self::{file::FileTaskStore, memory::MemoryTaskStore, scoped::ScopedTaskStore};
use crate::{ExecutorId, TaskChange, TaskError, TaskRecord};

/// Keeps the records of tasks, and who is alive to execute them.
///
/// Every change is all or nothing, and stands when the call returns. A store may be used by many
/// processes at once; then [`is_shared`](Self::is_shared) says so, and executors look out for what
/// others ask of their tasks. `mainstem_testing::task_store` is the contract as a test suite.
#[async_trait]
pub trait TaskStore: Send + Sync + 'static {
    /// Keeps a new record.
    ///
    /// # Errors
    /// [`TaskError::Exists`], or that it can't be kept; then it isn't.
    async fn create(&self, record: TaskRecord) -> Result<(), TaskError>;

    /// Changes a record, as [`TaskRecord::apply`] does, if it is what the caller takes it for.
    /// Returns what it is now.
    ///
    /// # Errors
    /// [`TaskError::Unknown`], [`Conflict`](TaskError::Conflict), [`Fenced`](TaskError::Fenced),
    /// [`Illegal`](TaskError::Illegal), or that it can't be kept; the record then stays as it was.
    async fn update(
        &self,
        id: &TaskId,
        expected: Expected,
        change: TaskChange,
        now: Timestamp,
    ) -> Result<TaskRecord, TaskError>;

    /// The record of a task; `None` if there is none.
    ///
    /// # Errors
    /// That it can't be read.
    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, TaskError>;

    /// Records, oldest first.
    ///
    /// # Errors
    /// That they can't be read.
    async fn list(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, TaskError>;

    /// Forgets a record for good. Returns what it was.
    ///
    /// # Errors
    /// [`TaskError::Unknown`], or that it can't be forgotten; it then stays.
    async fn remove(&self, id: &TaskId) -> Result<TaskRecord, TaskError>;

    /// Says that an executor is alive, and will be believed to be until then.
    ///
    /// # Errors
    /// That it can't be kept.
    async fn renew(&self, executor: &ExecutorId, until: Timestamp) -> Result<(), TaskError>;

    /// Returns the end of an executor's lease; `None` if the executor never had one, has released
    /// it, or if the store can tell that the executor's process has ended.
    ///
    /// # Errors
    /// That it can't be read.
    async fn lease(&self, executor: &ExecutorId) -> Result<Option<Timestamp>, TaskError>;

    /// Says that an executor is gone.
    ///
    /// # Errors
    /// That it can't be kept; its lease then runs out by itself.
    async fn release(&self, executor: &ExecutorId) -> Result<(), TaskError>;

    /// Whether other processes may change records as well.
    fn is_shared(&self) -> bool;
}

/// What a record must be for a change to be made. By default anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expected {
    /// Its version: nobody else has changed it.
    pub version: Option<u64>,
    /// Its fence: nobody else executes it.
    pub fence: Option<u64>,
}

impl Expected {
    /// Anything.
    pub fn any() -> Self {
        Self::default()
    }

    /// The very version that was read.
    pub fn version(version: u64) -> Self {
        Self { version: Some(version), fence: None }
    }

    /// Whatever was changed, as long as the same executor has it.
    pub fn fence(fence: u64) -> Self {
        Self { version: None, fence: Some(fence) }
    }

    fn check(self, record: &TaskRecord) -> Result<(), TaskError> {
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
    /// Those whose parent's own session this is.
    pub parent: Option<SessionId>,
    /// Those that stand so.
    pub status: Option<TaskStatus>,
}

impl TaskFilter {
    /// All tasks.
    pub fn all() -> Self {
        Self::default()
    }

    /// The tasks below a root session.
    pub fn of_root(root: SessionId) -> Self {
        Self { root: Some(root), ..Self::default() }
    }

    /// The tasks of the agent whose own session this is.
    pub fn of_parent(parent: SessionId) -> Self {
        Self { parent: Some(parent), ..Self::default() }
    }

    /// Of these, those that stand so.
    #[must_use]
    pub fn with_status(mut self, status: TaskStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Whether a record is one of them.
    pub fn matches(&self, record: &TaskRecord) -> bool {
        self.root.as_ref().is_none_or(|root| *root == record.root_session_id)
            && self.parent.as_ref().is_none_or(|parent| *parent == record.parent_session_id)
            && self.status.is_none_or(|status| status == record.status)
    }
}

/// A change of a record that is in memory.
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

/// Oldest first.
fn sort(records: &mut [TaskRecord]) {
    records.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
}
