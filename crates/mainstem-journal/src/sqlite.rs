//! Sessions in one file of an embedded database, for all processes of a workspace.

mod data;
mod jobs;
mod links;
mod lock;
mod op;
mod queue;
mod queued;
mod record;
mod schema;
mod table;
mod threads;
mod transaction;
mod writer;

use std::{ops::Range, path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use mainstem_event::{AgentEvent, Clock, Record, SystemClock, Timestamp};
use mainstem_message::{DataId, LinkId, RunId, SessionId};
use rusqlite::Connection;
use tokio::sync::oneshot;

use self::{
    data::StoreData,
    jobs::SqliteJobs,
    op::{Answer, Op},
    record::SqliteRecord,
    threads::Threads,
};
use crate::{
    ActiveSession, Checkpoint, Claim, Claimed, JobStore, Journal, JournalError, Link, Listing, Part,
    QueuedRun, Retention, RunPlace, SessionSummary, backend::dropped_through,
};

/// How long an event waits for others to be committed with it, unless one of them is durable.
pub const COMMIT_AFTER: Duration = Duration::from_millis(25);

/// The maximum number of events in a page.
const PAGE: usize = 256;

/// Stores sessions in one SQLite file.
///
/// One thread writes for all sessions, in groups: a commit begins as soon as a
/// [durable](mainstem_event::EventKind::is_durable) event is queued, or else [`COMMIT_AFTER`] the
/// first event of a group. Another thread reads.
///
/// After a process is killed, the file has all committed events: on a disk that keeps up, all but
/// the last 50 ms, and every durable event that a reader has seen. After a loss of power, it has
/// all events up to the last durable event that a reader has seen (its commit is synced, with
/// `synchronous=FULL`) or up to the last [`flush`](Journal::flush), and a first part of what was
/// committed later.
///
/// Any number of processes may open the file; a session is written by one of them, which holds a
/// lock on a file in `<file>.locks/` and a fence in the database. Files of all older formats can be
/// read; one of a newer format is refused, with the name of the program that wrote it.
///
/// Dropping the journal and the last of its records waits until all appended events are written,
/// except while the writing thread wakes the log of that record: then the thread writes the rest
/// without a wait. [`close`](Journal::close) waits in any case, so a program that ends calls it.
///
/// ```no_run
/// use mainstem_journal::{Journal, SqliteJournal};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mainstem_journal::JournalError> {
/// let journal = SqliteJournal::open("sessions.db")?;
/// for session in journal.sessions().await? {
///     println!("{}: {} events", session.id, session.events());
/// }
/// journal.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SqliteJournal {
    threads: Arc<Threads>,
    jobs: Arc<SqliteJobs>,
}

impl SqliteJournal {
    /// Opens a file, or creates it with access for its owner alone. Blocks on the disk.
    ///
    /// # Errors
    /// If it is [newer](JournalError::Newer) or [something else](JournalError::Foreign), can't be
    /// opened or is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        Ok(Self::new(Threads::start(path.as_ref().to_owned(), None)?))
    }

    /// Opens a file as [`open`](Self::open) does, and bounds its size: a session that would make it
    /// larger fails, as on a full disk.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_bounded(path: impl AsRef<Path>, bytes: u64) -> Result<Self, JournalError> {
        Ok(Self::new(Threads::start(path.as_ref().to_owned(), Some(bytes))?))
    }

    /// Opens a file that this process can't write, such as one of another user or on a disk that is
    /// read-only. What would change it fails.
    ///
    /// Another process may have the file open for writing. One that opens it later can make reads
    /// of this journal fail.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), or [`JournalError::Older`].
    pub fn open_to_read(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        Ok(Self::new(Threads::start_to_read(path.as_ref().to_owned())?))
    }

    fn new(threads: Threads) -> Self {
        let threads = Arc::new(threads);
        let jobs = Arc::new(SqliteJobs::new(threads.clone()));
        Self { threads, jobs }
    }

    /// Returns the file.
    pub fn path(&self) -> &Path {
        self.threads.path()
    }

    /// Sends a request to the writer, after all earlier ones.
    async fn send<T>(&self, op: impl FnOnce(Answer<T>) -> Op) -> Result<T, JournalError> {
        let (caller, answer) = oneshot::channel();
        self.threads.queue().push(op(Answer::new(caller)));
        answer.await.unwrap_or(Err(JournalError::Closed))
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn open(&self, session: &SessionId) -> Result<Arc<dyn Record>, JournalError> {
        let id = session.clone();
        let opened = self.send(|answer| Op::Open(id, answer)).await?;
        Ok(Arc::new(SqliteRecord::new(self.threads.clone(), opened)))
    }

    async fn is_open(&self, session: &SessionId) -> Result<bool, JournalError> {
        let id = session.clone();
        self.send(|answer| Op::IsOpen(id, answer)).await
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, JournalError> {
        self.threads.read("list the sessions of", table::sessions).await
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<SessionSummary>, JournalError> {
        let listing = listing.clone();
        self.threads.read("list the sessions of", move |connection| table::list(connection, &listing)).await
    }

    async fn active(&self, part: &Part, max: usize) -> Result<Vec<ActiveSession>, JournalError> {
        let listing = Listing::new(part.clone(), max);
        let list = move |connection: &Connection| table::with_run(connection, &listing);
        let mut active = Vec::new();
        for session in self.threads.read("list the sessions of", list).await? {
            let is_open = self.is_open(&session.id).await?;
            active.push(ActiveSession { session, is_open, node: None });
        }
        Ok(active)
    }

    async fn session(&self, id: &SessionId) -> Result<Option<SessionSummary>, JournalError> {
        let id = id.clone();
        self.threads.read("read", move |connection| table::session(connection, &id)).await
    }

    async fn read(
        &self,
        session: &SessionId,
        from: u64,
        max: usize,
    ) -> Result<Vec<AgentEvent>, JournalError> {
        let id = session.clone();
        let read = move |connection: &_| {
            let rows = table::page_of(connection, &id, from, max.min(PAGE))?;
            let rows = rows.ok_or_else(|| JournalError::Unknown { session: id.clone() });
            Ok(rows.and_then(|rows| rows.intact(&id)))
        };
        self.threads.read("read", read).await?
    }

    fn jobs(&self) -> Option<Arc<dyn JobStore>> {
        Some(self.jobs.clone())
    }

    async fn sizes(&self) -> Result<Vec<(SessionId, u64)>, JournalError> {
        self.threads.read("read", table::sizes).await
    }

    async fn run(&self, id: &RunId) -> Result<Option<RunPlace>, JournalError> {
        let id = id.clone();
        self.threads.read("read", move |connection| table::place_of(connection, &id)).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, JournalError> {
        self.send(|answer| Op::Claim(Box::new(claim), answer)).await
    }

    async fn abandoned(&self) -> Result<Vec<SessionId>, JournalError> {
        let queued = self.threads.read("list the queued runs of", queued::sessions).await?;
        let mut closed = Vec::new();
        for session in queued {
            if !self.is_open(&session).await? {
                closed.push(session);
            }
        }
        Ok(closed)
    }

    async fn queue_run(&self, run: QueuedRun) -> Result<(), JournalError> {
        self.threads.write("queue a run in", move |connection| queued::add(connection, &run)).await
    }

    async fn queued_run(&self, id: &RunId) -> Result<Option<QueuedRun>, JournalError> {
        let id = id.clone();
        self.threads.read("read a queued run of", move |connection| queued::find(connection, &id)).await
    }

    async fn queued_runs(&self, session: &SessionId) -> Result<Vec<QueuedRun>, JournalError> {
        let id = session.clone();
        self.threads.read("list the queued runs of", move |connection| queued::of(connection, &id)).await
    }

    async fn unqueue_run(&self, id: &RunId) -> Result<bool, JournalError> {
        let id = id.clone();
        self.threads.write("remove a queued run of", move |connection| queued::remove(connection, &id)).await
    }

    async fn checkpoint(&self, session: &SessionId) -> Result<Option<Checkpoint>, JournalError> {
        let id = session.clone();
        self.threads.read("read", move |connection| table::checkpoint(connection, &id)).await
    }

    async fn store_checkpoint(
        &self,
        session: &SessionId,
        checkpoint: Checkpoint,
    ) -> Result<(), JournalError> {
        let id = session.clone();
        self.send(|answer| Op::Checkpoint(id, checkpoint, answer)).await
    }

    async fn moment(&self, session: &SessionId, seq: u64) -> Result<Option<Checkpoint>, JournalError> {
        let id = session.clone();
        self.threads.read("read", move |connection| table::moment(connection, &id, seq)).await
    }

    async fn store_moment(&self, session: &SessionId, moment: Checkpoint) -> Result<(), JournalError> {
        let id = session.clone();
        let store = move |connection: &Connection| table::store_moment(connection, &id, &moment);
        self.threads.write("write a state to", store).await
    }

    async fn add_link(&self, link: Link) -> Result<bool, JournalError> {
        self.threads.write("write a link to", move |connection| links::add(connection, &link)).await
    }

    async fn link(&self, id: &LinkId) -> Result<Option<Link>, JournalError> {
        let id = id.clone();
        self.threads.read("read a link of", move |connection| links::find(connection, &id)).await
    }

    async fn links(&self, session: &SessionId) -> Result<Vec<Link>, JournalError> {
        let id = session.clone();
        self.threads.read("list the links of", move |connection| links::of(connection, &id)).await
    }

    async fn remove_link(&self, id: &LinkId) -> Result<bool, JournalError> {
        let id = id.clone();
        self.threads.write("write a link to", move |connection| links::remove(connection, &id)).await
    }

    async fn store_data(&self, session: &SessionId, id: &DataId, bytes: Bytes) -> Result<bool, JournalError> {
        let data = StoreData { session: session.clone(), id: id.clone(), bytes, now: SystemClock.now() };
        self.send(|answer| Op::StoreData(Box::new(data), answer)).await
    }

    async fn data_size(&self, session: &SessionId, id: &DataId) -> Result<Option<u64>, JournalError> {
        let (session, id) = (session.clone(), id.clone());
        let find = move |connection: &_| data::size(connection, &session, &id);
        self.threads.read("read data of", find).await
    }

    async fn data(
        &self,
        session: &SessionId,
        id: &DataId,
        part: Range<u64>,
    ) -> Result<Option<Bytes>, JournalError> {
        let (session, id) = (session.clone(), id.clone());
        let find = move |connection: &_| data::find(connection, &session, &id, &part);
        self.threads.read("read data of", find).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, JournalError> {
        let id = session.clone();
        self.send(|answer| Op::Delete(id, answer)).await
    }

    async fn retain(&self, retention: &Retention, now: Timestamp) -> Result<u64, JournalError> {
        let clean = move |connection: &_| data::remove_abandoned(connection, now);
        self.threads.write("remove data from", clean).await?;
        let mut dropped = 0;
        for session in self.sessions().await?.into_iter().filter(|session| session.damage.is_none()) {
            let through = dropped_through(self, &session, retention, now, PAGE).await?;
            // One part at a time, so that events are committed in between.
            let mut first = session.first;
            while first <= through {
                let id = session.id.clone();
                let next = match self.send(|answer| Op::Prune(id, through, answer)).await {
                    Err(JournalError::Unknown { .. }) => break,
                    next => next?,
                };
                dropped += next - first;
                first = next;
            }
        }
        Ok(dropped)
    }

    async fn flush(&self) -> Result<(), JournalError> {
        self.send(Op::Flush).await
    }

    async fn close(&self) -> Result<(), JournalError> {
        self.send(Op::Close).await
    }
}
