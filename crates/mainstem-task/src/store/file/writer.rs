//! Changes of files; changes that arrive together are written together.

use std::{
    mem,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mainstem_event::Timestamp;
use mainstem_message::TaskId;
use tokio::{sync::oneshot, task::spawn_blocking};

use super::tasks::{self, Tasks};
use crate::{
    TaskChange, TaskError, TaskRecord,
    store::{Expected, change},
};

/// A change of a file of tasks.
pub(super) enum Op {
    Create(Box<TaskRecord>),
    Update { id: TaskId, expected: Expected, change: TaskChange, now: Timestamp },
    Remove(TaskId),
}

#[derive(Default)]
pub(super) struct Writer(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    waiting: Vec<Request>,
    /// Whether a thread writes; it looks here again before it stops.
    is_busy: bool,
}

struct Request {
    path: PathBuf,
    op: Op,
    reply: oneshot::Sender<Result<TaskRecord, TaskError>>,
}

impl Writer {
    /// Makes a change; it is recorded when this returns. Dropping the future does not take it back.
    pub(super) async fn write(&self, path: PathBuf, op: Op) -> Result<TaskRecord, TaskError> {
        let (reply, done) = oneshot::channel();
        let gone = TaskError::io("write", path.clone());
        let must_start = {
            let mut queue = lock(&self.0);
            queue.waiting.push(Request { path, op, reply });
            !mem::replace(&mut queue.is_busy, true)
        };
        if must_start {
            let drain = Drain { queue: self.0.clone(), is_over: false };
            spawn_blocking(move || drain.run());
        }
        done.await.unwrap_or_else(|_| Err(gone(std::io::ErrorKind::Interrupted.into())))
    }
}

/// Writes the queue until it is empty. If it is dropped before, as with the runtime, the waiting
/// callers get an error and the next change starts another.
struct Drain {
    queue: Arc<Mutex<Queue>>,
    is_over: bool,
}

impl Drain {
    fn run(mut self) {
        while !self.is_over {
            let mut batch = mem::take(&mut lock(&self.queue).waiting);
            batch.sort_by(|a, b| a.path.cmp(&b.path));
            while let Some(first) = batch.first() {
                let path = first.path.clone();
                let rest = batch.split_off(batch.iter().take_while(|request| request.path == path).count());
                commit(&path, mem::replace(&mut batch, rest));
            }
            let mut queue = lock(&self.queue);
            self.is_over = queue.waiting.is_empty();
            queue.is_busy = !self.is_over;
        }
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        if !self.is_over {
            *lock(&self.queue) = Queue::default();
        }
    }
}

/// Makes all changes of one file, and replies when they are on the disk.
fn commit(path: &Path, requests: Vec<Request>) {
    let mut replies = Vec::new();
    let written = write_all(path, requests, &mut replies);
    for (reply, changed) in replies {
        let result = changed.and_then(|record| written.clone().map(|()| record));
        // The caller may have been dropped.
        let _ = reply.send(result);
    }
}

type Reply = (oneshot::Sender<Result<TaskRecord, TaskError>>, Result<TaskRecord, TaskError>);

fn write_all(path: &Path, requests: Vec<Request>, replies: &mut Vec<Reply>) -> Result<(), TaskError> {
    let locked = tasks::lock(path).and_then(|lock| Ok((lock, load(path)?)));
    let (_lock, mut tasks) = match locked {
        Ok(locked) => locked,
        Err(error) => {
            replies.extend(requests.into_iter().map(|request| (request.reply, Err(error.clone()))));
            return Err(error);
        }
    };
    let before = tasks.clone();
    replies.extend(requests.into_iter().map(|Request { op, reply, .. }| (reply, op.apply(&mut tasks))));
    if tasks == before {
        return Ok(());
    }
    let content =
        serde_json::to_vec_pretty(&tasks).map_err(|error| TaskError::io("write", path)(error.into()))?;
    tasks::replace(path, &content, true)
}

/// Reads a file. One that can't be parsed counts as empty, so that new records are stored.
fn load(path: &Path) -> Result<Tasks, TaskError> {
    match tasks::load(path) {
        Err(error @ TaskError::Corrupt { .. }) => {
            tracing::error!(%error, "unreadable tasks are left out");
            Ok(Tasks::new())
        }
        loaded => loaded,
    }
}

impl Op {
    fn apply(self, tasks: &mut Tasks) -> Result<TaskRecord, TaskError> {
        match self {
            Self::Create(record) if tasks.contains_key(&record.id) => {
                Err(TaskError::Exists { id: record.id })
            }
            Self::Create(record) => {
                tasks.insert(record.id.clone(), (*record).clone());
                Ok(*record)
            }
            Self::Update { id, expected, change: what, now } => {
                change(tasks.get_mut(&id), &id, expected, what, now)
            }
            Self::Remove(id) => tasks.remove(&id).ok_or(TaskError::Unknown { id }),
        }
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("waiting", &lock(&self.0).waiting.len()).finish_non_exhaustive()
    }
}
