//! A journal that fails when a test says so.

use std::{
    fmt,
    io::{Error, ErrorKind},
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::Waker,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use mainstem_event::{AgentEvent, Page, Position, Record, Timestamp};
use mainstem_journal::{
    ActiveSession, Checkpoint, Claim, Claimed, Journal, JournalError, Link, Listing, Part, QueuedRun,
    Retention, RunPlace, SessionSummary,
};
use mainstem_message::{DataId, LinkId, RunId, SessionId};
use mainstem_tool::async_trait;
use tokio::sync::watch;

/// Events have numbers from 1.
const UNDAMAGED: u64 = 0;

/// The number of remaining events while the disk is unlimited.
const NO_FAULT: u64 = u64::MAX;

/// A [`Journal`] whose disk is full from the moment that a test chooses until the test makes room.
/// Cheap to clone; clones are the same journal.
///
/// It can damage an event, and counts the events that are read.
///
/// While the disk is full, a record fails permanently at its next event, as with a real disk, and
/// sessions can't be opened; committed events can be read.
#[derive(Clone)]
pub struct FaultyJournal {
    inner: Arc<dyn Journal>,
    room: Arc<AtomicU64>,
    opens: Arc<Gate>,
    data: Arc<Gate>,
    commits: Arc<Commits>,
    /// The number of the damaged event of each session.
    damaged: Arc<AtomicU64>,
    read: Arc<AtomicUsize>,
}

/// Whether events are held back, and the records that hold them.
#[derive(Default)]
struct Commits(Mutex<HeldRecords>);

#[derive(Default)]
struct HeldRecords {
    are_held: bool,
    records: Vec<Weak<FaultyRecord>>,
}

/// Holds back calls until a test releases them.
#[derive(Default)]
struct Gate {
    is_closed: watch::Sender<bool>,
    waiting: AtomicUsize,
}

impl Gate {
    async fn pass(&self) {
        let mut is_closed = self.is_closed.subscribe();
        if *is_closed.borrow_and_update() {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            // The sender is in the journal, which the caller holds.
            let _ = is_closed.wait_for(|is_closed| !is_closed).await;
        }
    }
}

impl FaultyJournal {
    /// Creates a journal that works until [`fill_after`](Self::fill_after).
    pub fn new(inner: impl Journal) -> Self {
        Self {
            inner: Arc::new(inner),
            room: Arc::new(AtomicU64::new(NO_FAULT)),
            opens: Arc::default(),
            data: Arc::default(),
            commits: Arc::default(),
            damaged: Arc::new(AtomicU64::new(UNDAMAGED)),
            read: Arc::default(),
        }
    }

    /// Sets whether opening a session waits from now on; openings that wait continue when this is
    /// reset.
    pub fn hold_opens(&self, holds: bool) {
        self.opens.is_closed.send_replace(holds);
    }

    /// Returns how many openings of a session have waited.
    pub fn held_opens(&self) -> usize {
        self.opens.waiting.load(Ordering::SeqCst)
    }

    /// Sets whether storing data of messages waits from now on; what waits continues when this is
    /// reset.
    pub fn hold_data(&self, holds: bool) {
        self.data.is_closed.send_replace(holds);
    }

    /// Returns how many data have waited.
    pub fn held_data(&self) -> usize {
        self.data.waiting.load(Ordering::SeqCst)
    }

    /// Sets whether events wait from now on instead of being committed; those that wait are
    /// committed when this is reset.
    pub fn hold_commits(&self, holds: bool) {
        let mut commits = lock(&self.commits.0);
        commits.are_held = holds;
        if !holds {
            // No record appends meanwhile, so the events stay in order.
            commits
                .records
                .drain(..)
                .filter_map(|record| record.upgrade())
                .for_each(|record| record.commit());
        }
    }

    /// Accepts this number of further events, of all sessions together; then the disk is full.
    pub fn fill_after(&self, events: u64) {
        self.room.store(events, Ordering::SeqCst);
    }

    /// Makes room: sessions can be opened and written again.
    pub fn make_room(&self) {
        self.room.store(NO_FAULT, Ordering::SeqCst);
    }

    /// Damages the event with this number, of every session, from now on; repairs the one before.
    pub fn damage(&self, seq: u64) {
        self.damaged.store(seq, Ordering::SeqCst);
    }

    /// Returns the number of events that were read since the last call.
    pub fn take_read(&self) -> usize {
        self.read.swap(0, Ordering::SeqCst)
    }

    /// Ends a page before the damaged event.
    fn check_damage(&self, session: &SessionId, page: &mut Vec<AgentEvent>) -> Result<(), JournalError> {
        let seq = self.damaged.load(Ordering::SeqCst);
        match page.iter().position(|event| event.seq == seq) {
            Some(0) => {
                let why = "expected value at line 1 column 1";
                Err(JournalError::damaged(session.clone(), seq, why))
            }
            place => {
                page.truncate(place.unwrap_or(page.len()));
                Ok(())
            }
        }
    }

    fn check_room(&self) -> Result<(), JournalError> {
        match self.room.load(Ordering::SeqCst) {
            0 => Err(JournalError::store("write", "journal.db")(full())),
            _ => Ok(()),
        }
    }
}

fn full() -> Error {
    Error::new(ErrorKind::StorageFull, "no space left on device")
}

/// A record with the same fault.
struct FaultyRecord {
    inner: Arc<dyn Record>,
    room: Arc<AtomicU64>,
    failure: OnceLock<Arc<str>>,
    commits: Arc<Commits>,
    /// Events that wait.
    held: Mutex<Vec<AgentEvent>>,
    waker: Mutex<Option<Waker>>,
    me: Weak<Self>,
}

impl FaultyRecord {
    fn commit(&self) {
        let mut held = lock(&self.held);
        held.drain(..).for_each(|event| self.inner.append(&event));
        drop(held);
        if let Some(waker) = &*lock(&self.waker) {
            waker.wake_by_ref();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Record for FaultyRecord {
    fn position(&self) -> Position {
        self.inner.position()
    }

    fn append(&self, event: &AgentEvent) {
        if self.failure.get().is_some() {
            return;
        }
        let take = |room: u64| if room == NO_FAULT { Some(room) } else { room.checked_sub(1) };
        match self.room.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take) {
            Ok(_) => {
                let mut commits = lock(&self.commits.0);
                if !commits.are_held {
                    return self.inner.append(event);
                }
                let mut held = lock(&self.held);
                if held.is_empty() {
                    commits.records.push(self.me.clone());
                }
                held.push(event.clone());
            }
            Err(_) => {
                let why = format!("session {} is no longer recorded: {}", event.origin.session_id, full());
                let _ = self.failure.set(why.into());
            }
        }
    }

    fn committed(&self) -> u64 {
        self.inner.committed()
    }

    fn failure(&self) -> Option<Arc<str>> {
        self.failure.get().cloned().or_else(|| self.inner.failure())
    }

    fn watch(&self, waker: Waker) {
        *lock(&self.waker) = Some(waker.clone());
        self.inner.watch(waker);
    }

    fn read(&self, from: u64, through: u64) -> BoxFuture<'static, Page> {
        self.inner.read(from, through)
    }
}

macro_rules! pass_on {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Journal for FaultyJournal {
            async fn open(&self, session: &SessionId) -> Result<Arc<dyn Record>, JournalError> {
                self.opens.pass().await;
                self.check_room()?;
                let (inner, room) = (self.inner.open(session).await?, self.room.clone());
                Ok(Arc::new_cyclic(|me| FaultyRecord {
                    inner,
                    room,
                    failure: OnceLock::new(),
                    commits: self.commits.clone(),
                    held: Mutex::default(),
                    waker: Mutex::default(),
                    me: me.clone(),
                }))
            }

            async fn read(
                &self,
                session: &SessionId,
                from: u64,
                max: usize,
            ) -> Result<Vec<AgentEvent>, JournalError> {
                let mut page = self.inner.read(session, from, max).await?;
                self.check_damage(session, &mut page)?;
                self.read.fetch_add(page.len(), Ordering::SeqCst);
                Ok(page)
            }

            async fn store_data(
                &self,
                session: &SessionId,
                id: &DataId,
                bytes: Bytes,
            ) -> Result<bool, JournalError> {
                self.data.pass().await;
                self.check_room()?;
                self.inner.store_data(session, id, bytes).await
            }

            async fn flush(&self) -> Result<(), JournalError> {
                self.check_room()?;
                self.inner.flush().await
            }

            $(async fn $name(&self, $($argument: $kind),*) -> Result<$answer, JournalError> {
                self.inner.$name($($argument),*).await
            })*
        }
    };
}

pass_on! {
    is_open(session: &SessionId) -> bool;
    sessions() -> Vec<SessionSummary>;
    list(listing: &Listing) -> Vec<SessionSummary>;
    active(part: &Part, max: usize) -> Vec<ActiveSession>;
    session(id: &SessionId) -> Option<SessionSummary>;
    run(id: &RunId) -> Option<RunPlace>;
    abandoned() -> Vec<SessionId>;
    forget_cut(session: &SessionId) -> ();
    claim(claim: Claim) -> Claimed;
    queue_run(run: QueuedRun) -> ();
    queued_run(id: &RunId) -> Option<QueuedRun>;
    queued_runs(session: &SessionId) -> Vec<QueuedRun>;
    unqueue_run(id: &RunId) -> bool;
    checkpoint(session: &SessionId) -> Option<Checkpoint>;
    store_checkpoint(session: &SessionId, checkpoint: Checkpoint) -> ();
    moment(session: &SessionId, seq: u64) -> Option<Checkpoint>;
    store_moment(session: &SessionId, moment: Checkpoint) -> ();
    add_link(link: Link) -> bool;
    link(id: &LinkId) -> Option<Link>;
    links(session: &SessionId) -> Vec<Link>;
    remove_link(id: &LinkId) -> bool;
    data_size(session: &SessionId, id: &DataId) -> Option<u64>;
    data(session: &SessionId, id: &DataId, part: Range<u64>) -> Option<Bytes>;
    delete(session: &SessionId) -> bool;
    retain(retention: &Retention, now: Timestamp) -> u64;
    close() -> ();
}

impl fmt::Debug for FaultyJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyJournal").field("inner", &self.inner).finish_non_exhaustive()
    }
}
