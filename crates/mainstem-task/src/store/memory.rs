//! Records in memory, for one process.

use async_trait::async_trait;
use dashmap::{DashMap, mapref::entry::Entry};
use mainstem_event::Timestamp;
use mainstem_message::{SessionId, TaskId};

use super::{Expected, TaskFilter, TaskStore, change, sort};
use crate::{ExecutorId, TaskChange, TaskError, TaskRecord};

/// Stores records in memory. No guard is held across an await.
///
/// ```
/// use mainstem_task::{MemoryTaskStore, TaskFilter, TaskStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mainstem_task::TaskError> {
/// let store = MemoryTaskStore::default();
/// assert!(store.list(&TaskFilter::default()).await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct MemoryTaskStore {
    tasks: DashMap<TaskId, TaskRecord>,
    /// The tasks of each parent, which are listed before each model call.
    of_parent: DashMap<SessionId, Vec<TaskId>>,
    leases: DashMap<ExecutorId, Timestamp>,
}

impl MemoryTaskStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl TaskStore for MemoryTaskStore {
    async fn create(&self, record: TaskRecord) -> Result<(), TaskError> {
        let (id, parent) = (record.id.clone(), record.parent_session_id.clone());
        match self.tasks.entry(id.clone()) {
            Entry::Occupied(_) => return Err(TaskError::Exists { id }),
            Entry::Vacant(free) => _ = free.insert(record),
        }
        self.of_parent.entry(parent).or_default().push(id);
        Ok(())
    }

    async fn update(
        &self,
        id: &TaskId,
        expected: Expected,
        what: TaskChange,
        now: Timestamp,
    ) -> Result<TaskRecord, TaskError> {
        change(self.tasks.get_mut(id).as_deref_mut(), id, expected, what, now)
    }

    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, TaskError> {
        Ok(self.tasks.get(id).map(|record| record.clone()))
    }

    async fn list(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, TaskError> {
        let mut found: Vec<_> = match &filter.parent {
            None => self.tasks.iter().map(|record| record.clone()).collect(),
            Some(parent) => {
                let ids = self.of_parent.get(parent).map(|ids| ids.clone()).unwrap_or_default();
                ids.iter().filter_map(|id| self.tasks.get(id).map(|record| record.clone())).collect()
            }
        };
        found.retain(|record| filter.matches(record));
        sort(&mut found);
        Ok(found)
    }

    async fn remove(&self, id: &TaskId) -> Result<TaskRecord, TaskError> {
        let (_, record) = self.tasks.remove(id).ok_or_else(|| TaskError::Unknown { id: id.clone() })?;
        if let Some(mut siblings) = self.of_parent.get_mut(&record.parent_session_id) {
            siblings.retain(|sibling| sibling != id);
        }
        Ok(record)
    }

    async fn renew(&self, executor: &ExecutorId, until: Timestamp) -> Result<(), TaskError> {
        self.leases.insert(executor.clone(), until);
        Ok(())
    }

    async fn lease(&self, executor: &ExecutorId) -> Result<Option<Timestamp>, TaskError> {
        Ok(self.leases.get(executor).map(|until| *until))
    }

    async fn release(&self, executor: &ExecutorId) -> Result<(), TaskError> {
        self.leases.remove(executor);
        Ok(())
    }

    fn is_shared(&self) -> bool {
        false
    }
}
