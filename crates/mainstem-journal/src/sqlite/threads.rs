//! The two threads of a journal: one writes, one reads. They end when their last user is dropped.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::{FutureExt, future::BoxFuture};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::{queue::Queue, schema, writer::Writer};
use crate::{
    JournalError,
    sync::{self, thread},
};

/// The number of requests to the reader that may be queued; further callers wait.
const ASKING: usize = 64;

type Job = Box<dyn FnOnce(&Connection) + Send>;

pub(super) struct Threads {
    path: PathBuf,
    queue: Arc<Queue>,
    jobs: mpsc::Sender<Job>,
    writer: Option<thread::JoinHandle<()>>,
}

impl Threads {
    pub(super) fn start(path: PathBuf, max_bytes: Option<u64>) -> Result<Self, JournalError> {
        let writer = schema::open(&path, max_bytes)?;
        let reader = schema::open_again(&path, max_bytes)?;
        Self::with(path, writer, reader)
    }

    /// Starts the threads of a file that this process only reads: requests to write fail.
    pub(super) fn start_to_read(path: PathBuf) -> Result<Self, JournalError> {
        let (writer, reader) = (schema::open_to_read(&path)?, schema::open_to_read(&path)?);
        Self::with(path, writer, reader)
    }

    fn with(path: PathBuf, writer: Connection, reader: Connection) -> Result<Self, JournalError> {
        let writer = Writer::new(writer, path.clone());
        let queue = Arc::new(Queue::default());
        let (jobs, mut asked) = mpsc::channel::<Job>(ASKING);
        let spawn = |name: &str| thread::Builder::new().name(name.to_owned());
        let failed = || JournalError::store("start a thread for", path.clone());
        spawn("journal-reader")
            .spawn(move || {
                while let Some(job) = sync::receive(&mut asked) {
                    job(&reader);
                }
            })
            .map_err(failed())?;
        let orders = queue.clone();
        let writer = spawn("journal-writer").spawn(move || writer.run(&orders)).map_err(failed())?;
        Ok(Self { path, queue, jobs, writer: Some(writer) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Runs a read on the reading thread. Dropping the future discards the result.
    pub(super) fn read<T: Send + 'static>(
        &self,
        what: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, JournalError>> {
        let (reply, answer) = oneshot::channel();
        let path = self.path.clone();
        let job = move |connection: &Connection| {
            if !reply.is_closed() {
                let _ = reply.send(read(connection).map_err(JournalError::store(what, path)));
            }
        };
        let (jobs, job): (_, Job) = (self.jobs.clone(), Box::new(job));
        async move {
            jobs.send(job).await.map_err(|_| JournalError::Closed)?;
            answer.await.unwrap_or(Err(JournalError::Closed))
        }
        .boxed()
    }

    /// Runs a change that is short and rare on the reading thread: it waits for no event.
    pub(super) fn write<T: Send + 'static>(
        &self,
        what: &'static str,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, JournalError>> {
        self.read(what, |connection| {
            let change = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
            let written = write(&change)?;
            change.commit()?;
            Ok(written)
        })
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.queue.end();
        let Some(writer) = self.writer.take() else { return };
        // The writer itself may hold the last reference to a log while it wakes it.
        if writer.thread().id() != thread::current().id() {
            let _ = writer.join();
        }
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads")
            .field("path", &self.path)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}
