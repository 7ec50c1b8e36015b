//! The store of background tasks.

use std::{fmt, future::Future, sync::Arc};

use async_trait::async_trait;
use mainstem_event::Timestamp;
use mainstem_message::TaskId;
use mainstem_task::{
    ExecutorId, Expected, LEASE_DURATION, TaskChange, TaskError, TaskFilter, TaskRecord, TaskStore,
};

use crate::{
    error::{Failure, Result},
    node::{Owner, Shared, repeat},
    sql::tasks as sql,
};

/// Background tasks in PostgreSQL, shared by all nodes of a database. Cheap to clone.
///
/// An executor is alive while its node is, by the database's clock; so a node whose clock is wrong
/// does not take another's tasks for lost.
#[derive(Clone)]
pub struct PostgresTaskStore {
    owner: Arc<Owner>,
}

impl PostgresTaskStore {
    pub(crate) fn new(owner: Arc<Owner>) -> Self {
        Self { owner }
    }

    /// Serves a request on the node's thread.
    async fn serve<T, F>(
        &self,
        doing: &'static str,
        request: impl FnOnce(Arc<Shared>) -> F,
    ) -> Result<T, TaskError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let ended = || Failure::permanent("its node has ended");
        let served = self.owner.run(request).await.unwrap_or_else(|| Err(ended()));
        served.map_err(|failure| failure.of_tasks(doing, self.owner.shared.place()))
    }
}

impl fmt::Debug for PostgresTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresTaskStore").field("place", &self.owner.shared.place()).finish_non_exhaustive()
    }
}

#[async_trait]
impl TaskStore for PostgresTaskStore {
    async fn create(&self, record: TaskRecord) -> Result<(), TaskError> {
        let id = record.id.clone();
        let write = |shared: Arc<Shared>| async move { sql::create(&shared.client().await?, &record).await };
        match self.serve("write a task to", write).await? {
            true => Ok(()),
            false => Err(TaskError::Exists { id }),
        }
    }

    async fn update(
        &self,
        id: &TaskId,
        expected: Expected,
        change: TaskChange,
        now: Timestamp,
    ) -> Result<TaskRecord, TaskError> {
        let id = id.clone();
        let write = move |shared: Arc<Shared>| async move {
            let apply = |record: &mut TaskRecord| {
                expected.check(record)?;
                Ok(record.apply(change, now)?)
            };
            sql::update(&mut shared.client().await?, &id, apply).await
        };
        self.serve("write a task to", write).await?
    }

    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, TaskError> {
        let id = id.clone();
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::get(&shared.client().await?, &id).await }).await
        };
        self.serve("read the tasks of", read).await
    }

    async fn list(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, TaskError> {
        let filter = filter.clone();
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::list(&shared.client().await?, &filter).await }).await
        };
        self.serve("read the tasks of", read).await
    }

    async fn remove(&self, id: &TaskId) -> Result<TaskRecord, TaskError> {
        let task = id.clone();
        let write = |shared: Arc<Shared>| async move { sql::remove(&shared.client().await?, &task).await };
        let removed = self.serve("remove a task from", write).await?;
        removed.ok_or_else(|| TaskError::Unknown { id: id.clone() })
    }

    async fn renew(&self, executor: &ExecutorId, until: Timestamp) -> Result<(), TaskError> {
        let executor = executor.clone();
        let write = move |shared: Arc<Shared>| async move {
            let renew = || async {
                sql::renew(&shared.client().await?, &executor, shared.no(), until, LEASE_DURATION).await
            };
            repeat(renew).await
        };
        self.serve("renew a lease at", write).await
    }

    async fn lease(&self, executor: &ExecutorId) -> Result<Option<Timestamp>, TaskError> {
        let executor = executor.clone();
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::lease(&shared.client().await?, &executor, shared.no()).await }).await
        };
        self.serve("read the leases of", read).await
    }

    async fn release(&self, executor: &ExecutorId) -> Result<(), TaskError> {
        let executor = executor.clone();
        let write = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::release(&shared.client().await?, &executor).await }).await
        };
        self.serve("end a lease at", write).await
    }

    fn is_shared(&self) -> bool {
        true
    }
}
