//! The journal.

use std::{
    fmt,
    future::Future,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use mainstem_event::{AgentEvent, Record, Timestamp};
use mainstem_journal::{
    ActiveSession, Changes, Checkpoint, Claim, Claimed, Figures, JobStore, Journal, JournalError, Link,
    Listing, Part, QueuedRun, Relay, Retention, RunPlace, SessionSummary, backend::dropped_through,
};
use mainstem_message::{DataId, LinkId, RunId, SessionId};
use tokio::sync::{oneshot, watch};

use crate::{
    error::{Failure, Result},
    jobs::PostgresJobs,
    node::{Owner, PAGE, Shared, repeat},
    queue::Op,
    record::{Entry, Opened},
    relay::PostgresRelay,
    sql::{self, data, links, queued},
};

/// Sessions in PostgreSQL, shared by all nodes of a database: any of them reads a session, and one
/// at a time writes it. Cheap to clone.
///
/// All committed events survive the end of the process and, as far as the database is set up for
/// it (`synchronous_commit`), of the database. Events are committed in groups, at the latest 25 ms
/// after the first of a group. While the database can't be reached, events wait; when the node's
/// lease is over, the records of its open sessions fail.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use mainstem_journal::Journal;
/// use mainstem_postgres::{Node, Settings};
///
/// let node = Node::join(Settings::parse("postgres://fleet@localhost/agents")?).await?;
/// for session in node.journal().sessions().await? {
///     println!("{}", session.id);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresJournal {
    owner: Arc<Owner>,
}

impl PostgresJournal {
    pub(crate) fn new(owner: Arc<Owner>) -> Self {
        Self { owner }
    }

    /// Serves a request on the node's thread.
    pub(crate) async fn serve<T, F>(
        &self,
        what: &'static str,
        request: impl FnOnce(Arc<Shared>) -> F,
    ) -> Result<T, JournalError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let served = self.owner.run(request).await.ok_or(JournalError::Closed)?;
        served.map_err(|failure| failure.of_journal(what, self.owner.shared.place()))
    }

    /// Returns an error if the journal is closed, or if its node has no lease.
    pub(crate) fn check_writable(&self) -> Result<(), JournalError> {
        let shared = &self.owner.shared;
        if shared.is_closed() {
            return Err(JournalError::Closed);
        }
        match shared.unwritable() {
            Some(why) => Err(Failure::permanent(why).of_journal("write", shared.place())),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for PostgresJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresJournal").field("place", &self.owner.shared.place()).finish_non_exhaustive()
    }
}

/// Opens a session for writing; `None` if it is open, here or at another node.
async fn open(shared: Arc<Shared>, session: SessionId) -> Result<Option<Opened>> {
    // The release of a record that was dropped is in the queue, or, if the writer itself has
    // dropped it when it woke the log, behind the first barrier.
    shared.barrier(Some(&session)).await;
    if shared.is_open(&session) {
        shared.barrier(Some(&session)).await;
    }
    let Some(reserved) = shared.reserve(&session) else { return Ok(None) };
    let taken = repeat(|| async { sql::take(&shared.client().await?, &session, shared.no()).await }).await?;
    let Some(taken) = taken else { return Ok(None) };
    let entry = Arc::new(Entry::new(session.clone(), taken.no, taken.epoch, taken.head));
    reserved.fill(entry.clone());
    Ok(Some(Opened::new(shared.clone(), entry)))
}

/// Returns `true` if a session is open here; waits until a dropped record is released.
async fn is_open_here(shared: &Shared, session: &SessionId) -> bool {
    for _ in 0..2 {
        shared.barrier(Some(session)).await;
        if !shared.is_open(session) {
            return false;
        }
    }
    true
}

#[async_trait]
impl Journal for PostgresJournal {
    async fn open(&self, session: &SessionId) -> Result<Arc<dyn Record>, JournalError> {
        self.check_writable()?;
        let id = session.clone();
        let opened = self.serve("open a session in", |shared| open(shared, id)).await?;
        let record = opened.and_then(|opened| opened.into_record(self.owner.clone()));
        let record = record.ok_or_else(|| JournalError::Busy { session: session.clone() })?;
        Ok(Arc::new(record))
    }

    async fn is_open(&self, session: &SessionId) -> Result<bool, JournalError> {
        let id = session.clone();
        let ask = |shared: Arc<Shared>| async move {
            // A release that failed is made up for when the session is opened.
            let is_other = || async { sql::is_open(&shared.client().await?, &id, shared.no()).await };
            Ok(is_open_here(&shared, &id).await || repeat(is_other).await?)
        };
        self.serve("read", ask).await
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, JournalError> {
        let list = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::sessions(&shared.client().await?).await }).await
        };
        self.serve("list the sessions of", list).await
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<SessionSummary>, JournalError> {
        let listing = listing.clone();
        let list = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::list(&shared.client().await?, &listing).await }).await
        };
        self.serve("list the sessions of", list).await
    }

    async fn active(&self, part: &Part, max: usize) -> Result<Vec<ActiveSession>, JournalError> {
        let part = part.clone();
        let list = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::active(&shared.client().await?, &part, max).await }).await
        };
        self.serve("list the sessions of", list).await
    }

    async fn session(&self, id: &SessionId) -> Result<Option<SessionSummary>, JournalError> {
        let id = id.clone();
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::session(&shared.client().await?, &id).await }).await
        };
        self.serve("read", read).await
    }

    async fn read(
        &self,
        session: &SessionId,
        from: u64,
        max: usize,
    ) -> Result<Vec<AgentEvent>, JournalError> {
        let id = session.clone();
        let read = move |shared: Arc<Shared>| async move {
            repeat(|| async { sql::page_of(&shared.client().await?, &id, from, max.min(PAGE)).await }).await
        };
        let found = self.serve("read", read).await?;
        found.ok_or_else(|| JournalError::Unknown { session: session.clone() })?.intact(session)
    }

    async fn sizes(&self) -> Result<Vec<(SessionId, u64)>, JournalError> {
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::sizes(&shared.client().await?).await }).await
        };
        self.serve("read", read).await
    }

    async fn changes(&self, session: &SessionId) -> Result<Option<Changes>, JournalError> {
        let id = session.clone();
        let find = |shared: Arc<Shared>| async move {
            let no = repeat(|| async { sql::no_of(&shared.client().await?, &id).await }).await?;
            Ok(no.map(|no| shared.notices.subscribe(no)))
        };
        let told = self.serve("read", find).await?;
        let next = |mut told: watch::Receiver<()>| async { told.changed().await.ok().map(|()| ((), told)) };
        Ok(told.map(|told| stream::unfold(told, next).boxed()))
    }

    async fn abandoned(&self) -> Result<Vec<SessionId>, JournalError> {
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::abandoned(&shared.client().await?).await }).await
        };
        self.serve("read", read).await
    }

    async fn forget_cut(&self, session: &SessionId) -> Result<(), JournalError> {
        let id = session.clone();
        let forget = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::forget_cut(&shared.client().await?, &id, shared.no()).await }).await
        };
        self.serve("write to", forget).await
    }

    fn node(&self) -> Option<String> {
        Some(self.owner.shared.name().to_owned())
    }

    fn relay(&self) -> Option<Arc<dyn Relay>> {
        let is_node = !self.owner.shared.only_reads();
        is_node.then(|| Arc::new(PostgresRelay::new(self.owner.clone())) as _)
    }

    fn jobs(&self) -> Option<Arc<dyn JobStore>> {
        Some(Arc::new(PostgresJobs(self.clone())))
    }

    fn figures(&self) -> Option<Figures> {
        let shared = &self.owner.shared;
        Some(shared.counts.figures(shared.lease.left(), shared.connections()))
    }

    async fn ready(&self) -> Result<(), JournalError> {
        self.check_writable()
    }

    async fn run(&self, id: &RunId) -> Result<Option<RunPlace>, JournalError> {
        let id = id.clone();
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::place_of(&shared.client().await?, &id).await }).await
        };
        self.serve("read", read).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, JournalError> {
        self.check_writable()?;
        let write = |shared: Arc<Shared>| async move {
            let attempts = AtomicUsize::new(0);
            let attempt = || async {
                let client = shared.client().await?;
                attempts.fetch_add(1, Ordering::Relaxed);
                sql::claim(&client, &claim).await
            };
            let earlier = repeat(attempt).await?;
            // An earlier attempt may have made this claim, and its answer was lost.
            let is_own = |earlier: &Claim| attempts.load(Ordering::Relaxed) > 1 && *earlier == claim;
            let earlier = earlier.filter(|earlier| !is_own(earlier));
            Ok(earlier.map_or(Claimed::New, |earlier| claim.outcome_after(&earlier)))
        };
        self.serve("write", write).await
    }

    async fn queue_run(&self, run: QueuedRun) -> Result<(), JournalError> {
        self.check_writable()?;
        let add = |shared: Arc<Shared>| async move {
            repeat(|| async { queued::add(&shared.client().await?, &run).await }).await
        };
        self.serve("queue a run in", add).await
    }

    async fn queued_run(&self, id: &RunId) -> Result<Option<QueuedRun>, JournalError> {
        let id = id.clone();
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { queued::find(&shared.client().await?, &id).await }).await
        };
        self.serve("read a queued run of", read).await
    }

    async fn queued_runs(&self, session: &SessionId) -> Result<Vec<QueuedRun>, JournalError> {
        let id = session.clone();
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { queued::of(&shared.client().await?, &id).await }).await
        };
        self.serve("list the queued runs of", read).await
    }

    async fn unqueue_run(&self, id: &RunId) -> Result<bool, JournalError> {
        self.check_writable()?;
        let id = id.clone();
        let remove = |shared: Arc<Shared>| async move {
            repeat(|| async { queued::remove(&shared.client().await?, &id).await }).await
        };
        self.serve("remove a queued run of", remove).await
    }

    async fn checkpoint(&self, session: &SessionId) -> Result<Option<Checkpoint>, JournalError> {
        let id = session.clone();
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::checkpoint(&shared.client().await?, &id).await }).await
        };
        self.serve("read", read).await
    }

    async fn store_checkpoint(
        &self,
        session: &SessionId,
        checkpoint: Checkpoint,
    ) -> Result<(), JournalError> {
        self.check_writable()?;
        let id = session.clone();
        let write = |shared: Arc<Shared>| async move {
            shared.barrier(Some(&id)).await;
            repeat(|| async { sql::store_checkpoint(&shared.client().await?, &id, &checkpoint).await }).await
        };
        self.serve("write", write).await
    }

    async fn moment(&self, session: &SessionId, seq: u64) -> Result<Option<Checkpoint>, JournalError> {
        let id = session.clone();
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::moment(&shared.client().await?, &id, seq).await }).await
        };
        self.serve("read", read).await
    }

    async fn store_moment(&self, session: &SessionId, moment: Checkpoint) -> Result<(), JournalError> {
        self.check_writable()?;
        let id = session.clone();
        let write = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::store_moment(&shared.client().await?, &id, &moment).await }).await
        };
        self.serve("write", write).await
    }

    async fn add_link(&self, link: Link) -> Result<bool, JournalError> {
        self.check_writable()?;
        let add = |shared: Arc<Shared>| async move {
            shared.barrier(Some(&link.session)).await;
            repeat(|| async { links::add(&shared.client().await?, &link).await }).await
        };
        self.serve("write a link to", add).await
    }

    async fn link(&self, id: &LinkId) -> Result<Option<Link>, JournalError> {
        let id = id.clone();
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { links::find(&shared.client().await?, &id).await }).await
        };
        self.serve("read a link of", read).await
    }

    async fn links(&self, session: &SessionId) -> Result<Vec<Link>, JournalError> {
        let id = session.clone();
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { links::of(&shared.client().await?, &id).await }).await
        };
        self.serve("list the links of", read).await
    }

    async fn remove_link(&self, id: &LinkId) -> Result<bool, JournalError> {
        self.check_writable()?;
        let id = id.clone();
        let remove = |shared: Arc<Shared>| async move { links::remove(&shared.client().await?, &id).await };
        self.serve("write a link to", remove).await
    }

    async fn store_data(&self, session: &SessionId, id: &DataId, bytes: Bytes) -> Result<bool, JournalError> {
        self.check_writable()?;
        let (session, id) = (session.clone(), id.clone());
        let add = |shared: Arc<Shared>| async move {
            repeat(|| async { data::add(&shared.client().await?, &session, &id, &bytes).await }).await
        };
        self.serve("store data in", add).await
    }

    async fn data_size(&self, session: &SessionId, id: &DataId) -> Result<Option<u64>, JournalError> {
        let (session, id) = (session.clone(), id.clone());
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { data::size(&shared.client().await?, &session, &id).await }).await
        };
        self.serve("read data of", read).await
    }

    async fn data(
        &self,
        session: &SessionId,
        id: &DataId,
        part: Range<u64>,
    ) -> Result<Option<Bytes>, JournalError> {
        let (session, id) = (session.clone(), id.clone());
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { data::find(&shared.client().await?, &session, &id, &part).await }).await
        };
        self.serve("read data of", read).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, JournalError> {
        let id = session.clone();
        let write = |shared: Arc<Shared>| async move {
            if is_open_here(&shared, &id).await {
                return Ok(None);
            }
            // Nothing opens it meanwhile.
            let Some(_reserved) = shared.reserve(&id) else { return Ok(None) };
            sql::delete(&mut shared.client().await?, &id, shared.no()).await
        };
        let deleted = self.serve("delete a session of", write).await?;
        deleted.ok_or_else(|| JournalError::Busy { session: session.clone() })
    }

    async fn retain(&self, retention: &Retention, now: Timestamp) -> Result<u64, JournalError> {
        let clean = |shared: Arc<Shared>| async move {
            repeat(|| async { data::remove_abandoned(&shared.client().await?).await }).await
        };
        self.serve("remove data from", clean).await?;
        let mut dropped = 0;
        for session in self.sessions().await?.into_iter().filter(|session| session.damage.is_none()) {
            let through = dropped_through(self, &session, retention, now, PAGE).await?;
            // One part at a time, so that events are committed in between.
            let mut first = session.first;
            while first <= through {
                let id = session.id.clone();
                let prune = move |shared: Arc<Shared>| async move {
                    repeat(|| async { sql::prune(&mut shared.client().await?, &id, through).await }).await
                };
                let Some(next) = self.serve("drop old events of", prune).await? else { break };
                dropped += next - first;
                first = next;
            }
        }
        Ok(dropped)
    }

    async fn flush(&self) -> Result<(), JournalError> {
        let flush = |shared: Arc<Shared>| async move {
            match shared.barrier(None).await {
                true => Ok(()),
                false => Err(Failure::transient("the last events could not be written")),
            }
        };
        self.serve("write", flush).await
    }

    async fn close(&self) -> Result<(), JournalError> {
        let (caller, closed) = oneshot::channel();
        self.owner.shared.queue.push(Op::Close(caller));
        closed.await.unwrap_or(Err(JournalError::Closed))?;
        if self.owner.shared.only_reads() {
            return Ok(());
        }
        let leave =
            |shared: Arc<Shared>| async move { sql::leave(&shared.client().await?, shared.no()).await };
        self.serve("leave", leave).await
    }
}
