//! A session that another process writes, for the readers in this one: its log is a copy, which
//! follows the journal.

use std::{
    fmt,
    pin::pin,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    task::Waker,
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use mainstem_api::EventQuery;
use mainstem_event::{
    AgentEvent, FleetState, LogOptions, Page, Position, Record, SessionLog, SystemClock, Timestamp,
};
use mainstem_journal::{Journal, JournalError, SessionSummary};
use mainstem_message::{RunId, SessionId};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::{moments::Moments, records::Reader, selection::Selection};

/// After this time without an event, the process of the session may have ended.
const IDLE: Duration = Duration::from_secs(1);

/// How long to wait before a page that can't be read is read again.
const AGAIN: Duration = Duration::from_millis(500);

/// The events of a session that another process writes. They are read from the journal once for
/// all readers. Dropping the last clone ends that.
#[derive(Clone)]
pub struct SessionCopy(Arc<Inner>);

struct Inner {
    log: Arc<SessionLog>,
    record: Arc<Copied>,
    moments: Moments,
    _driver: AbortOnDropHandle<()>,
}

impl SessionCopy {
    /// Begins a copy of a recorded session; `None` if it does not exist.
    ///
    /// # Errors
    /// The journal can't be read.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub(crate) async fn begin(
        journal: &Arc<dyn Journal>,
        id: &SessionId,
    ) -> Result<Option<Self>, JournalError> {
        let Some(session) = journal.session(id).await? else { return Ok(None) };
        let mut position = Position::default();
        (position.last, position.at, position.run) = (session.last, session.updated_at, session.unfinished);
        let after = Some(position.last);
        let created_at = session.created_at;
        let followed = Followed { journal: journal.clone(), id: id.clone(), created_at };
        let record = Arc::new(Copied::new(followed, position));
        let (clock, options) = (Arc::new(SystemClock), LogOptions::default());
        let log = SessionLog::with_record(id.clone(), clock, options, record.clone());
        let query = EventQuery { after, ..EventQuery::default() };
        let reader = Reader::new(journal.clone(), id.clone(), &query, Selection::all()).of(created_at);
        #[expect(clippy::disallowed_methods, reason = "it is aborted when the copy is dropped")]
        let driver =
            AbortOnDropHandle::new(tokio::spawn(drive(reader, Arc::downgrade(&log), record.clone())));
        Ok(Some(Self(Arc::new(Inner { log, record, moments: Moments::default(), _driver: driver }))))
    }

    /// Returns its log. All its events are committed, and it emits none. It has failed when the
    /// journal can't be read, or the session was deleted.
    pub fn log(&self) -> &Arc<SessionLog> {
        &self.0.log
    }

    /// Returns what the fleet was doing after an event, as
    /// [`Session::fleet_at`](crate::Session::fleet_at) does.
    pub async fn fleet_at(&self, seq: u64) -> Option<FleetState> {
        let journal = &self.0.record.session.journal;
        self.0.moments.at(self.log(), seq, Some(&**journal)).await
    }

    /// Returns `true` if the process of the session has ended within a run, and no other continues
    /// the session by itself: it has to be opened.
    pub async fn is_abandoned(&self) -> bool {
        self.0.record.session.is_abandoned().await
    }

    /// Waits until it has every event that is committed now. Returns `false` if the session no
    /// longer exists, or the copy has failed.
    ///
    /// # Errors
    /// The journal can't be read.
    pub(crate) async fn caught_up(&self) -> Result<bool, JournalError> {
        let Some(session) = self.0.record.session().await? else { return Ok(false) };
        Ok(self.log().until_committed(session.last).await)
    }

    /// Returns the number of a run's first event, and whether the run is over; `None` if the
    /// session has no such run, or it has not begun. The copy has all events of a run that is over.
    ///
    /// # Errors
    /// The journal can't be read.
    pub async fn run(&self, id: &RunId) -> Result<Option<(u64, bool)>, JournalError> {
        let Inner { log, record, .. } = &*self.0;
        let place = record.session.journal.run(id).await?.filter(|place| place.session == *log.session_id());
        let (Some(place), Some(session)) = (place, record.session().await?) else { return Ok(None) };
        let is_over = session.unfinished.as_ref() != Some(id);
        Ok(log.until_committed(session.last).await.then_some((place.first, is_over)))
    }

    pub(crate) fn downgrade(&self) -> WeakCopy {
        WeakCopy(Arc::downgrade(&self.0))
    }
}

impl fmt::Debug for SessionCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionCopy").field(self.log()).finish()
    }
}

/// A copy that ends without its readers.
pub(crate) struct WeakCopy(Weak<Inner>);

impl WeakCopy {
    /// Returns the copy, unless it has ended or failed.
    pub(crate) fn upgrade(&self) -> Option<SessionCopy> {
        self.0.upgrade().filter(|inner| inner.log.failure().is_none()).map(SessionCopy)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// Copies events until the log is dropped, or one is missing.
async fn drive(mut reader: Reader, log: Weak<SessionLog>, record: Arc<Copied>) {
    loop {
        let next = next_of(&mut reader, &record).await;
        let Some(log) = log.upgrade() else { return };
        let why = match next {
            Ok(event) if log.copy(event.clone()) => continue,
            Ok(event) => format!("event {} follows event {}", event.seq, log.last_seq()),
            Err(why) => why,
        };
        return record.fail(&why);
    }
}

/// Returns the next event, or why there is none.
async fn next_of(reader: &mut Reader, record: &Copied) -> Result<AgentEvent, String> {
    let mut next = pin!(reader.next());
    loop {
        match timeout(IDLE, &mut next).await {
            Ok(Ok(Some(event))) => return Ok(event),
            Ok(Ok(None)) => return Err("the journal has no further events".to_owned()),
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) if record.session.is_abandoned().await => {
                return Err("the process that ran it has ended".to_owned());
            }
            Err(_) => {}
        }
    }
}

/// A session in its journal. A later one of the same id is another: it began at another time.
#[derive(Clone)]
struct Followed {
    journal: Arc<dyn Journal>,
    id: SessionId,
    created_at: Timestamp,
}

impl Followed {
    /// Returns the session; `None` if it was deleted.
    async fn session(&self) -> Result<Option<SessionSummary>, JournalError> {
        let session = self.journal.session(&self.id).await?;
        Ok(session.filter(|session| session.created_at == self.created_at))
    }

    /// Returns a page of committed events. A session that was deleted has none.
    async fn page(&self, from: u64, through: u64) -> Result<Page, JournalError> {
        let max = usize::try_from((through + 1).saturating_sub(from)).unwrap_or(usize::MAX);
        let read = self.journal.read(&self.id, from, max).await;
        // After the page, which may be of a later session.
        if self.session().await?.is_none() {
            return Ok(Page { events: Vec::new(), through });
        }
        match read {
            Ok(mut events) => {
                events.retain(|event| event.seq <= through);
                // A journal returns at least one event if it has any.
                let through = events.last().map_or(through, |last| last.seq);
                Ok(Page { events, through })
            }
            Err(JournalError::Damaged { seq, through, why, .. }) => {
                let gap = AgentEvent::unreadable(self.id.clone(), seq..=through, self.created_at, why);
                Ok(Page { events: vec![gap], through })
            }
            Err(error) => Err(error),
        }
    }

    /// Returns `true` if the session's process has ended within a run, and no other process goes on
    /// with it by itself: it has to be opened.
    async fn is_abandoned(&self) -> bool {
        let is_unfinished = |session: SessionSummary| session.unfinished.is_some();
        self.journal.node().is_none()
            && self.session().await.is_ok_and(|session| session.is_some_and(is_unfinished))
            && self.journal.is_open(&self.id).await.is_ok_and(|is_open| !is_open)
    }
}

/// A record that only reads: the events were committed by another process.
struct Copied {
    session: Followed,
    position: Position,
    committed: AtomicU64,
    failure: OnceLock<Arc<str>>,
    waker: Mutex<Option<Waker>>,
}

impl Copied {
    fn new(session: Followed, position: Position) -> Self {
        let committed = AtomicU64::new(position.last);
        let (failure, waker) = (OnceLock::new(), Mutex::new(None));
        Self { session, position, committed, failure, waker }
    }

    /// Returns the session; `None`, and the copy fails, if it was deleted.
    async fn session(&self) -> Result<Option<SessionSummary>, JournalError> {
        let session = self.session.session().await?;
        if session.is_none() {
            self.fail(&format!("there is no session {:?}", self.session.id.as_str()));
        }
        Ok(session)
    }

    fn fail(&self, why: &str) {
        let id = &self.session.id;
        tracing::info!(session = %id, why, "a session of another process is no longer followed");
        self.failure.get_or_init(|| format!("session {id} can't be followed: {why}").into());
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Record for Copied {
    fn position(&self) -> Position {
        self.position.clone()
    }

    fn append(&self, event: &AgentEvent) {
        self.committed.fetch_max(event.seq, Ordering::AcqRel);
    }

    fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    fn failure(&self) -> Option<Arc<str>> {
        self.failure.get().cloned()
    }

    fn watch(&self, waker: Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker);
    }

    fn read(&self, from: u64, through: u64) -> BoxFuture<'static, Page> {
        let session = self.session.clone();
        async move {
            loop {
                match session.page(from, through).await {
                    Ok(page) => return page,
                    Err(JournalError::Closed) => return Page { events: Vec::new(), through },
                    Err(_) => sleep(AGAIN).await,
                }
            }
        }
        .boxed()
    }
}
