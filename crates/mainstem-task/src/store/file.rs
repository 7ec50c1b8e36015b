//! Records in files of a workspace, one for each parent's session, shared by all its processes.

mod executors;
mod layout;
mod tasks;
mod writer;

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use dashmap::DashMap;
use mainstem_event::Timestamp;
use mainstem_message::TaskId;
use tokio::task::spawn_blocking;

use self::{
    executors::Executors,
    layout::Layout,
    tasks::Reader,
    writer::{Op, Writer},
};
use super::{Expected, TaskFilter, TaskStore, sort};
use crate::{ExecutorId, TaskChange, TaskError, TaskRecord};

/// Stores records in `agents/<parent agent>/tasks/<session>.json` below a directory: one JSON
/// object of task id to record.
///
/// A file is written anew, flushed to the disk and renamed, under an advisory lock
/// (`<session>.lock` beside it) that holds between processes; a reader sees the file before or
/// after a change. Changes that arrive while one is written are written together. A file that can't
/// be parsed is renamed and reported, never overwritten. Leases are files in `agents/.executors/`.
/// Beside each is a file that the executor holds locked, so that other processes see at once when
/// its process has ended.
///
/// ```
/// use std::sync::Arc;
///
/// use mainstem_event::SystemClock;
/// use mainstem_task::{ExecutorId, FileTaskStore, TaskSet};
///
/// let store = FileTaskStore::new("/srv/workspace");
/// let tasks = TaskSet::new(Arc::new(store), Arc::new(SystemClock), ExecutorId::new("node-1"));
/// # let _ = tasks;
/// ```
#[derive(Debug)]
pub struct FileTaskStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    layout: Layout,
    reader: Reader,
    writer: Writer,
    executors: Executors,
    /// The files of the tasks that were read.
    places: DashMap<TaskId, PathBuf>,
}

impl FileTaskStore {
    /// Creates a store in a workspace. The first record creates the directories.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Inner {
            layout: Layout::new(workspace.into()),
            reader: Reader::default(),
            writer: Writer::default(),
            executors: Executors::default(),
            places: DashMap::new(),
        }))
    }

    /// Runs blocking file work on another thread.
    async fn blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Inner) -> Result<T, TaskError> + Send + 'static,
    ) -> Result<T, TaskError> {
        let inner = self.0.clone();
        let done = spawn_blocking(move || read(&inner)).await;
        done.unwrap_or_else(|gone| Err(TaskError::io("read", "the task files")(gone.into())))
    }
}

impl Inner {
    fn list(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, TaskError> {
        let mut found = Vec::new();
        for path in self.layout.files(filter.parent.as_ref())? {
            for record in self.reader.read(&path)?.values() {
                if !self.places.contains_key(&record.id) {
                    self.places.insert(record.id.clone(), path.clone());
                }
                if filter.matches(record) {
                    found.push(record.clone());
                }
            }
        }
        sort(&mut found);
        Ok(found)
    }

    fn place(&self, id: &TaskId) -> Result<Option<PathBuf>, TaskError> {
        let known = || self.places.get(id).map(|path| path.clone());
        if known().is_none() {
            self.list(&TaskFilter::all())?;
        }
        Ok(known())
    }
}

#[async_trait]
impl TaskStore for FileTaskStore {
    async fn create(&self, record: TaskRecord) -> Result<(), TaskError> {
        let path = self.0.layout.file(&record.parent_agent_id, &record.parent_session_id);
        self.0.places.insert(record.id.clone(), path.clone());
        self.0.writer.write(path, Op::Create(Box::new(record))).await.map(drop)
    }

    async fn update(
        &self,
        id: &TaskId,
        expected: Expected,
        change: TaskChange,
        now: Timestamp,
    ) -> Result<TaskRecord, TaskError> {
        let wanted = id.clone();
        let place = self.blocking(move |inner| inner.place(&wanted)).await?;
        let path = place.ok_or_else(|| TaskError::Unknown { id: id.clone() })?;
        self.0.writer.write(path, Op::Update { id: id.clone(), expected, change, now }).await
    }

    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, TaskError> {
        let id = id.clone();
        self.blocking(move |inner| {
            let Some(path) = inner.place(&id)? else { return Ok(None) };
            Ok(inner.reader.read(&path)?.get(&id).cloned())
        })
        .await
    }

    async fn list(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, TaskError> {
        let filter = filter.clone();
        self.blocking(move |inner| inner.list(&filter)).await
    }

    async fn remove(&self, id: &TaskId) -> Result<TaskRecord, TaskError> {
        let wanted = id.clone();
        let place = self.blocking(move |inner| inner.place(&wanted)).await?;
        let path = place.ok_or_else(|| TaskError::Unknown { id: id.clone() })?;
        let removed = self.0.writer.write(path, Op::Remove(id.clone())).await?;
        self.0.places.remove(id);
        Ok(removed)
    }

    async fn renew(&self, executor: &ExecutorId, until: Timestamp) -> Result<(), TaskError> {
        let files = self.0.layout.executor(executor);
        self.blocking(move |inner| inner.executors.renew(&files, until)).await
    }

    async fn lease(&self, executor: &ExecutorId) -> Result<Option<Timestamp>, TaskError> {
        let files = self.0.layout.executor(executor);
        self.blocking(move |_| executors::lease(&files)).await
    }

    async fn release(&self, executor: &ExecutorId) -> Result<(), TaskError> {
        let files = self.0.layout.executor(executor);
        self.blocking(move |inner| inner.executors.release(&files)).await
    }

    fn is_shared(&self) -> bool {
        true
    }
}
