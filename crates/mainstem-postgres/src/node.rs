//! A node: its lease, and what its stores share.

mod upkeep;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    future::Future,
    io,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
        mpsc::sync_channel,
    },
    thread,
    time::Duration,
};

use deadpool_postgres::{Object as Client, Pool};
use futures_util::future;
use mainstem_event::Page;
use mainstem_journal::backend::Row;
use mainstem_message::SessionId;
use tokio::{
    runtime::{Builder, Handle},
    sync::{Notify, oneshot},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Error, PostgresJournal, PostgresTaskStore, Settings,
    error::Result,
    figures::Counts,
    lease::Lease,
    notices::Notices,
    pool::{Connector, get},
    queue::{Op, Queue},
    record::Entry,
    schema, sql, writer,
};

/// The maximum number of events in a page.
pub(crate) const PAGE: usize = 256;

/// How long a request is tried again while the database can't be reached.
const PATIENCE: Duration = Duration::from_secs(5);

const PAUSE: Duration = Duration::from_millis(200);

/// How often it is logged that the database is away.
pub(crate) const LOG_INTERVAL: Duration = Duration::from_secs(10);

const PROGRAM: &str = concat!("mainstem ", env!("CARGO_PKG_VERSION"));

/// The number of no node: they begin at 1.
const NO_NODE: i64 = 0;

/// A process that shares the database with others.
///
/// It renews its lease while it exists; [`LEASE`](crate::LEASE) after its last renewal the other
/// nodes may take its sessions over. A node that could not renew its lease knows it by then: the
/// records of its open sessions fail, so that their runs end, and it joins again when the database
/// can be reached.
///
/// All its work is done by one thread of its own, with up to
/// [`with_connections`](Settings::with_connections) + 2 connections. The thread ends when the node
/// and its stores and records are dropped, once what was appended is written; only
/// [`close`](mainstem_journal::Journal::close) waits for that.
#[derive(Clone)]
pub struct Node {
    owner: Arc<Owner>,
}

/// Ends the thread when the last user is dropped.
pub(crate) struct Owner {
    pub(crate) shared: Arc<Shared>,
    runtime: Handle,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.queue.end();
    }
}

impl Node {
    /// Joins the nodes of a database. Creates the tables if it has none.
    ///
    /// # Errors
    /// The database can't be reached or read, or its tables are those of another version that this
    /// program does not work with.
    pub async fn join(settings: Settings) -> Result<Self, Error> {
        let (ready, joined) = oneshot::channel();
        let runtime = start(settings, move |shared| ready.send(shared).is_ok())?;
        Self::begun(joined.await.ok(), runtime)
    }

    /// Joins as [`join`](Self::join) does, and blocks the thread meanwhile: for programs that have
    /// no runtime yet.
    ///
    /// # Errors
    /// Those of [`join`](Self::join).
    pub fn join_blocking(settings: Settings) -> Result<Self, Error> {
        let (ready, joined) = sync_channel(1);
        let runtime = start(settings, move |shared| ready.send(shared).is_ok())?;
        Self::begun(joined.recv().ok(), runtime)
    }

    /// Reads a database without being one of its nodes: it has no lease, is not listed, and opens
    /// and changes nothing. Its role needs no right but `SELECT`.
    ///
    /// # Errors
    /// The database can't be reached or read, has no tables, or has those of another version that
    /// this program does not work with.
    pub async fn read(settings: Settings) -> Result<Self, Error> {
        Self::join(Settings { only_reads: true, ..settings }).await
    }

    /// Reads as [`read`](Self::read) does, and blocks the thread until it is connected.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub fn read_blocking(settings: Settings) -> Result<Self, Error> {
        Self::join_blocking(Settings { only_reads: true, ..settings })
    }

    fn begun(joined: Option<Result<Arc<Shared>, Error>>, runtime: Handle) -> Result<Self, Error> {
        let shared = joined.unwrap_or_else(|| Err(Error::Thread("it has ended".to_owned())))?;
        Ok(Self { owner: Arc::new(Owner { shared, runtime }) })
    }

    /// Returns the journal of all sessions.
    pub fn journal(&self) -> PostgresJournal {
        PostgresJournal::new(self.owner.clone())
    }

    /// Returns the store of all background tasks.
    pub fn tasks(&self) -> PostgresTaskStore {
        PostgresTaskStore::new(self.owner.clone())
    }

    /// Waits until an operator asks the node to stop, by [`drain`](crate::drain). The program then
    /// stops as at a signal; nothing is refused before.
    pub async fn asked_to_stop(&self) {
        self.owner.shared.draining.cancelled().await;
    }

    /// Returns the database, as a URL without its password.
    pub fn place(&self) -> &str {
        self.owner.shared.place()
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("place", &self.place()).finish_non_exhaustive()
    }
}

impl Owner {
    /// Runs a request on the node's thread, which serves it also if the future is dropped.
    pub(crate) async fn run<T, F>(&self, request: impl FnOnce(Arc<Shared>) -> F) -> Option<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let request = request(self.shared.clone());
        // Of one type for all requests: the runtime's code for a task is not small.
        let served: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
            // The caller may have left.
            let _ = answer.send(request.await);
        });
        self.runtime.spawn(served);
        answered.await.ok()
    }
}

/// What the writer, the requests and the lease of a node share.
pub(crate) struct Shared {
    place: String,
    pool: Pool,
    /// The pool of the writer.
    writing: Pool,
    pub(crate) queue: Queue,
    pub(crate) counts: Counts,
    pub(crate) lease: Lease,
    pub(crate) notices: Notices,
    /// Who waits for a request between nodes, by its number.
    pub(crate) answers: Notices,
    /// Told when there are requests to this node.
    pub(crate) asked: Notify,
    /// The requests of other nodes that are answered here.
    answering: Mutex<HashSet<i64>>,
    /// The node's number in the database.
    no: AtomicI64,
    only_reads: bool,
    name: String,
    /// The sessions that are open here; `None` while one is being opened.
    open: Mutex<HashMap<SessionId, Option<Arc<Entry>>>>,
    is_closed: AtomicBool,
    /// Cancelled when an operator asks the node to stop.
    draining: CancellationToken,
}

/// A session that is being opened. Dropping it gives the place up.
pub(crate) struct Reserved<'a> {
    shared: &'a Shared,
    session: &'a SessionId,
}

impl Reserved<'_> {
    pub(crate) fn fill(self, entry: Arc<Entry>) {
        self.shared.open().insert(self.session.clone(), Some(entry));
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut open = self.shared.open();
        if open.get(self.session).is_some_and(Option::is_none) {
            open.remove(self.session);
        }
    }
}

impl Shared {
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Returns why nothing can be written now; `None` while the lease lasts.
    pub(crate) fn unwritable(&self) -> Option<String> {
        if self.only_reads {
            return Some("it is opened to read".to_owned());
        }
        self.lease.is_over().then(|| "this node could not renew its lease".to_owned())
    }

    /// Returns `true` if it is not a node.
    pub(crate) fn only_reads(&self) -> bool {
        self.only_reads
    }

    /// Returns why nothing can be written once the lease is over.
    pub(crate) fn lost_lease(&self) -> String {
        format!("this node could not renew its lease at {}", self.place)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn no(&self) -> i64 {
        self.no.load(Ordering::Acquire)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<SessionId, Option<Arc<Entry>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn answering(&self) -> MutexGuard<'_, HashSet<i64>> {
        self.answering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_open(&self, session: &SessionId) -> bool {
        self.open().contains_key(session)
    }

    /// Reserves the place of a session; `None` if it is open here.
    pub(crate) fn reserve<'a>(&'a self, session: &'a SessionId) -> Option<Reserved<'a>> {
        let mut open = self.open();
        if open.contains_key(session) {
            return None;
        }
        open.insert(session.clone(), None);
        Some(Reserved { shared: self, session })
    }

    /// Removes a session whose record was dropped.
    pub(crate) fn forget(&self, entry: &Arc<Entry>) {
        let mut open = self.open();
        let is_this =
            |other: &Option<Arc<Entry>>| other.as_ref().is_some_and(|other| Arc::ptr_eq(other, entry));
        if open.get(&entry.session).is_some_and(is_this) {
            open.remove(&entry.session);
        }
    }

    /// Fails a record, and counts it once.
    pub(crate) fn fail(&self, entry: &Entry, why: &str) {
        if entry.progress.failure().is_none() {
            self.counts.failed();
            entry.fail(why);
        }
    }

    /// Fails the records of all open sessions, and says so in the log.
    fn fail_all(&self, why: &str) {
        let mut open: Vec<_> = self.open().values().flatten().cloned().collect();
        open.retain(|entry| entry.progress.failure().is_none());
        open.iter().for_each(|entry| self.fail(entry, why));
        tracing::warn!(
            node = self.no(),
            sessions = open.len(),
            why,
            "the sessions can't be recorded here any longer"
        );
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Waits until what was requested before, of the session's tenant or of all, is committed.
    /// Returns `false` if the database can't be reached; what it refuses, the records tell.
    pub(crate) async fn barrier(&self, session: Option<&SessionId>) -> bool {
        let (caller, done) = oneshot::channel();
        self.queue.push(Op::Barrier(session.cloned(), caller));
        done.await.unwrap_or(false)
    }

    /// Returns how many connections are open, without that of the lease.
    pub(crate) fn connections(&self) -> usize {
        self.pool.status().size + self.writing.status().size
    }

    /// Returns a connection for a request.
    pub(crate) async fn client(&self) -> Result<Client> {
        get(&self.pool).await
    }

    /// Reads a page for a record. What can't be read is a gap, as what was dropped is.
    pub(crate) async fn page(self: Arc<Self>, entry: Arc<Entry>, from: u64, through: u64) -> Page {
        let read = || async { sql::page(&self.client().await?, entry.no, from, through, PAGE).await };
        match repeat(read).await {
            Ok(rows) => Row::page(&entry.session, &rows, through, PAGE),
            Err(failure) => {
                tracing::error!(error = %failure, session = %entry.session, "can't read events");
                Page { events: Vec::new(), through }
            }
        }
    }
}

/// Makes a request that can be repeated: while the database can't be reached, it is tried again for
/// some seconds.
pub(crate) async fn repeat<T, F: Future<Output = Result<T>>>(mut request: impl FnMut() -> F) -> Result<T> {
    let begun = Instant::now();
    loop {
        match request().await {
            Err(failure) if failure.is_transient && begun.elapsed() < PATIENCE => sleep(PAUSE).await,
            result => return result,
        }
    }
}

/// Starts the thread of a node, which tells `ready` how it has begun; that returns whether anyone
/// has heard it.
fn start(
    settings: Settings,
    ready: impl FnOnce(Result<Arc<Shared>, Error>) -> bool + Send + 'static,
) -> Result<Handle, Error> {
    let failed = |error: io::Error| Error::Thread(error.to_string());
    let connector = Connector::new(settings)?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let handle = runtime.handle().clone();
    let thread = thread::Builder::new().name("postgres".to_owned());
    thread.spawn(move || runtime.block_on(drive(connector, ready))).map_err(failed)?;
    Ok(handle)
}

/// The life of a node's thread.
async fn drive(connector: Connector, ready: impl FnOnce(Result<Arc<Shared>, Error>) -> bool) {
    let (shared, pool) = match begin(&connector).await {
        Ok(begun) => begun,
        Err(error) => {
            ready(Err(error));
            return;
        }
    };
    if !ready(Ok(shared.clone())) {
        shared.queue.end();
    }
    let writing = pin!(writer::run(shared.clone(), pool));
    let upkeep = pin!(future::join(upkeep::listen_and_renew(&shared, &connector), upkeep::fence(&shared)));
    future::select(writing, upkeep).await;
    if shared.only_reads {
        return;
    }
    let leave = async { sql::leave(&shared.client().await?, shared.no()).await };
    let _ = timeout(PAUSE, leave).await;
}

/// Joins the nodes of the database. Returns what the node shares, and the writer's connection.
async fn begin(connector: &Connector) -> Result<(Arc<Shared>, Pool), Error> {
    let settings = connector.settings();
    let place = settings.place().to_owned();
    let (pool, writer) = (connector.pool(settings.connections)?, connector.pool(1)?);
    let mut client = get(&pool).await.map_err(|failure| failure.at("connect to", &place))?;
    if settings.only_reads {
        schema::check_existing(&client, &place).await?;
    } else {
        schema::check(&mut client, &place).await?;
    }
    let asked_at = Instant::now();
    let joined = match settings.only_reads {
        true => Ok(NO_NODE),
        false => sql::join(&client, &settings.name, PROGRAM, settings.lease).await,
    };
    let no = joined.map_err(|failure| failure.at("join", &place))?;
    // If it has created the tables, its limits are those of that.
    drop(Client::take(client));
    let shared = Shared {
        place,
        pool,
        writing: writer.clone(),
        queue: Queue::default(),
        counts: Counts::default(),
        lease: Lease::new(settings.lease, asked_at),
        notices: Notices::default(),
        answers: Notices::default(),
        asked: Notify::new(),
        answering: Mutex::default(),
        no: AtomicI64::new(no),
        only_reads: settings.only_reads,
        name: settings.name.clone(),
        open: Mutex::default(),
        is_closed: AtomicBool::new(false),
        draining: CancellationToken::new(),
    };
    Ok((Arc::new(shared), writer))
}
