//! A session that another process writes, for the readers in this one: its log is a copy, which
//! follows the journal.

use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    task::Waker,
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use mainstem_api::EventQuery;
use mainstem_event::{AgentEvent, LogOptions, Page, Position, Record, SessionLog, SystemClock, Timestamp};
use mainstem_journal::{Journal, JournalError};
use mainstem_message::{RunId, SessionId};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::{records::Reader, selection::Selection};

/// How long to wait before a page that can't be read is read again.
const AGAIN: Duration = Duration::from_millis(500);

/// The events of a session that another process writes. They are read from the journal once for
/// all readers. Dropping the last clone ends that.
#[derive(Clone)]
pub struct SessionCopy(Arc<Inner>);

struct Inner {
    log: Arc<SessionLog>,
    journal: Arc<dyn Journal>,
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
        let record = Arc::new(Copied::new(journal.clone(), id.clone(), position));
        let (clock, options) = (Arc::new(SystemClock), LogOptions::default());
        let log = SessionLog::with_record(id.clone(), clock, options, record.clone());
        let query = EventQuery { after, ..EventQuery::default() };
        let reader = Reader::new(journal.clone(), id.clone(), &query, Selection::all());
        #[expect(clippy::disallowed_methods, reason = "it is aborted when the copy is dropped")]
        let driver = AbortOnDropHandle::new(tokio::spawn(drive(reader, Arc::downgrade(&log), record)));
        Ok(Some(Self(Arc::new(Inner { log, journal: journal.clone(), _driver: driver }))))
    }

    /// Returns its log. All its events are committed, and it emits none. It has failed when the
    /// journal can't be read, or the session was deleted.
    pub fn log(&self) -> &Arc<SessionLog> {
        &self.0.log
    }

    /// Waits until it has every event that is committed now. Returns `false` if the session no
    /// longer exists, or the copy has failed.
    ///
    /// # Errors
    /// The journal can't be read.
    pub(crate) async fn caught_up(&self) -> Result<bool, JournalError> {
        let Inner { log, journal, .. } = &*self.0;
        let Some(session) = journal.session(log.session_id()).await? else { return Ok(false) };
        Ok(log.until_committed(session.last).await)
    }

    /// Returns the number of a run's first event, and whether the run is over; `None` if the
    /// session has no such run, or it has not begun. The copy has all events of a run that is over.
    ///
    /// # Errors
    /// The journal can't be read.
    pub async fn run(&self, id: &RunId) -> Result<Option<(u64, bool)>, JournalError> {
        let Inner { log, journal, .. } = &*self.0;
        let place = journal.run(id).await?.filter(|place| place.session == *log.session_id());
        let (Some(place), Some(session)) = (place, journal.session(log.session_id()).await?) else {
            return Ok(None);
        };
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
        let next = reader.next().await;
        let Some(log) = log.upgrade() else { return };
        let why = match next {
            Ok(Some(event)) if log.copy(event.clone()) => continue,
            Ok(Some(event)) => format!("event {} follows event {}", event.seq, log.last_seq()),
            Ok(None) => "the journal has no further events".to_owned(),
            Err(error) => error.to_string(),
        };
        return record.fail(&format!("session {} can't be followed: {why}", log.session_id()));
    }
}

/// A record that only reads: the events were committed by another process.
struct Copied {
    journal: Arc<dyn Journal>,
    id: SessionId,
    position: Position,
    committed: AtomicU64,
    failure: OnceLock<Arc<str>>,
    waker: Mutex<Option<Waker>>,
}

impl Copied {
    fn new(journal: Arc<dyn Journal>, id: SessionId, position: Position) -> Self {
        let committed = AtomicU64::new(position.last);
        Self { journal, id, position, committed, failure: OnceLock::new(), waker: Mutex::new(None) }
    }

    fn fail(&self, why: &str) {
        self.failure.get_or_init(|| why.into());
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
        let (journal, id, at) = (self.journal.clone(), self.id.clone(), self.position.at);
        async move {
            let max = usize::try_from((through + 1).saturating_sub(from)).unwrap_or(usize::MAX);
            loop {
                match journal.read(&id, from, max).await {
                    Ok(events) => return page(events, through),
                    Err(JournalError::Damaged { seq, through, why, .. }) => {
                        return damaged(&id, seq, through, at, why);
                    }
                    Err(JournalError::Unknown { .. } | JournalError::Closed) => {
                        return Page { events: Vec::new(), through };
                    }
                    Err(_) => sleep(AGAIN).await,
                }
            }
        }
        .boxed()
    }
}

/// Returns the events up to a number as a page. A journal returns at least one event if it has any.
fn page(mut events: Vec<AgentEvent>, through: u64) -> Page {
    events.retain(|event| event.seq <= through);
    let through = events.last().map_or(through, |last| last.seq);
    Page { events, through }
}

fn damaged(id: &SessionId, seq: u64, through: u64, at: Timestamp, why: String) -> Page {
    Page { events: vec![AgentEvent::unreadable(id.clone(), seq..=through, at, why)], through }
}
