//! A journal in memory, for tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{
    FutureExt,
    future::{BoxFuture, ready},
};
use mainstem_event::{AgentEvent, Page, Position, Record, Timestamp};
use mainstem_message::{DataId, LinkId, RunId, SessionId};

use crate::{
    Checkpoint, Claim, Claimed, JobStore, Journal, JournalError, Link, MAX_WAITING_DATA, Place, QueuedRun,
    Retention, RunPlace, SessionSummary, backend::begins_run, jobs::MemoryJobs, retention::Cut,
};

/// The most events of a page.
const MAX_PAGE: usize = 256;

/// Stores sessions in memory. An event is committed when it is appended.
///
/// ```
/// use mainstem_journal::{Journal, MemoryJournal};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mainstem_journal::JournalError> {
/// let journal = MemoryJournal::default();
/// assert!(journal.sessions().await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct MemoryJournal {
    sessions: Mutex<BTreeMap<SessionId, Arc<StoredSession>>>,
    claims: Mutex<BTreeMap<String, Claim>>,
    links: Mutex<BTreeMap<LinkId, Link>>,
    /// In order.
    queued: Mutex<Vec<QueuedRun>>,
    data: Mutex<BTreeMap<(SessionId, DataId), Bytes>>,
    jobs: Arc<MemoryJobs>,
    capacity: Option<u64>,
    is_closed: AtomicBool,
}

#[derive(Debug, Default)]
struct StoredSession {
    is_open: AtomicBool,
    events: Mutex<Events>,
}

#[derive(Debug, Default)]
struct Events {
    stored: Vec<AgentEvent>,
    position: Position,
    /// The first event of each run.
    runs: BTreeMap<RunId, u64>,
    created_at: Timestamp,
    begun_at: Timestamp,
    checkpoint: Option<Checkpoint>,
    /// The states of the fleet after some events.
    moments: BTreeMap<u64, String>,
    failure: Option<Arc<str>>,
    is_closed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryJournal {
    /// Creates an empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a journal whose records fail after this number of events, as on a full disk.
    pub fn failing_after(events: u64) -> Self {
        Self { capacity: Some(events), ..Self::default() }
    }

    fn stored(&self, session: &SessionId) -> Option<Arc<StoredSession>> {
        lock(&self.sessions).get(session).cloned()
    }
}

impl Events {
    fn append(&mut self, event: &AgentEvent, capacity: Option<u64>) {
        if self.failure.is_some() {
            return;
        }
        if self.is_closed {
            self.failure = Some(JournalError::Closed.to_string().into());
            return;
        }
        if capacity.is_some_and(|capacity| event.seq > capacity) {
            self.failure = Some(format!("the journal in memory is full at event {}", event.seq).into());
            return;
        }
        if self.position.last == 0 {
            (self.created_at, self.begun_at) = (event.at, event.at);
        }
        self.position.apply(event);
        if let Some(run) = event.origin.run_id.as_ref().filter(|_| begins_run(event)) {
            self.runs.insert(run.clone(), event.seq);
            self.begun_at = event.at;
        }
        self.stored.push(event.clone());
    }

    fn first(&self) -> u64 {
        self.position.last + 1 - self.stored.len() as u64
    }

    fn range(&self, from: u64, max: usize) -> &[AgentEvent] {
        let skip = usize::try_from(from.saturating_sub(self.first())).unwrap_or(usize::MAX);
        let rest = self.stored.get(skip..).unwrap_or_default();
        &rest[..rest.len().min(max)]
    }

    fn summary(&self, id: &SessionId) -> Option<SessionSummary> {
        let Position { last, at: updated_at, run: unfinished, .. } = self.position.clone();
        let (first, runs, created_at) = (self.first(), self.runs.len() as u64, self.created_at);
        (last > 0).then(|| SessionSummary {
            id: id.clone(),
            first,
            last,
            runs,
            unfinished,
            cut: None,
            created_at,
            updated_at,
            place: Place { at: self.begun_at, name: id.as_str().to_owned() },
            damage: None,
        })
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn open(&self, session: &SessionId) -> Result<Arc<dyn Record>, JournalError> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(JournalError::Closed);
        }
        let stored = lock(&self.sessions).entry(session.clone()).or_default().clone();
        if stored.is_open.swap(true, Ordering::AcqRel) {
            return Err(JournalError::Busy { session: session.clone() });
        }
        let mut events = lock(&stored.events);
        events.failure = None;
        let position = events.position.clone();
        drop(events);
        Ok(Arc::new(MemoryRecord { stored, position, capacity: self.capacity }))
    }

    async fn is_open(&self, session: &SessionId) -> Result<bool, JournalError> {
        Ok(self.stored(session).is_some_and(|stored| stored.is_open.load(Ordering::Acquire)))
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, JournalError> {
        let sessions = lock(&self.sessions);
        let mut found: Vec<_> =
            sessions.iter().filter_map(|(id, stored)| lock(&stored.events).summary(id)).collect();
        found.sort_by_key(|session| std::cmp::Reverse(session.updated_at));
        Ok(found)
    }

    async fn session(&self, id: &SessionId) -> Result<Option<SessionSummary>, JournalError> {
        Ok(self.stored(id).and_then(|stored| lock(&stored.events).summary(id)))
    }

    async fn read(
        &self,
        session: &SessionId,
        from: u64,
        max: usize,
    ) -> Result<Vec<AgentEvent>, JournalError> {
        let unknown = || JournalError::Unknown { session: session.clone() };
        let stored = self.stored(session).ok_or_else(unknown)?;
        let events = lock(&stored.events);
        if events.position.last == 0 {
            return Err(unknown());
        }
        Ok(events.range(from, max.min(MAX_PAGE)).to_vec())
    }

    fn jobs(&self) -> Option<Arc<dyn JobStore>> {
        Some(self.jobs.clone())
    }

    async fn run(&self, id: &RunId) -> Result<Option<RunPlace>, JournalError> {
        let sessions = lock(&self.sessions);
        let place = |(session, stored): (&SessionId, &Arc<StoredSession>)| {
            let first = *lock(&stored.events).runs.get(id)?;
            Some(RunPlace { session: session.clone(), first })
        };
        Ok(sessions.iter().find_map(place))
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, JournalError> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(JournalError::Closed);
        }
        let mut claims = lock(&self.claims);
        claims.retain(|_, earlier| earlier.at >= claim.oldest_remembered());
        if let Some(earlier) = claims.get(&claim.key) {
            return Ok(claim.outcome_after(earlier));
        }
        claims.insert(claim.key.clone(), claim);
        Ok(Claimed::New)
    }

    async fn abandoned(&self) -> Result<Vec<SessionId>, JournalError> {
        let sessions = lock(&self.sessions);
        let is_open = |id| sessions.get(id).is_some_and(|session| session.is_open.load(Ordering::Acquire));
        let queued = lock(&self.queued);
        let closed: BTreeSet<_> = queued.iter().map(|run| &run.session).filter(|id| !is_open(*id)).collect();
        Ok(closed.into_iter().cloned().collect())
    }

    async fn queue_run(&self, run: QueuedRun) -> Result<(), JournalError> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(JournalError::Closed);
        }
        let mut queued = lock(&self.queued);
        if queued.iter().all(|known| known.id != run.id) {
            queued.push(run);
        }
        Ok(())
    }

    async fn queued_run(&self, id: &RunId) -> Result<Option<QueuedRun>, JournalError> {
        Ok(lock(&self.queued).iter().find(|run| run.id == *id).cloned())
    }

    async fn queued_runs(&self, session: &SessionId) -> Result<Vec<QueuedRun>, JournalError> {
        Ok(lock(&self.queued).iter().filter(|run| run.session == *session).cloned().collect())
    }

    async fn unqueue_run(&self, id: &RunId) -> Result<bool, JournalError> {
        let mut queued = lock(&self.queued);
        let before = queued.len();
        queued.retain(|run| run.id != *id);
        Ok(queued.len() < before)
    }

    async fn checkpoint(&self, session: &SessionId) -> Result<Option<Checkpoint>, JournalError> {
        Ok(self.stored(session).and_then(|stored| lock(&stored.events).checkpoint.clone()))
    }

    async fn store_checkpoint(
        &self,
        session: &SessionId,
        checkpoint: Checkpoint,
    ) -> Result<(), JournalError> {
        if let Some(stored) = self.stored(session) {
            let mut events = lock(&stored.events);
            if checkpoint.seq <= events.position.last {
                events.checkpoint = Some(checkpoint);
            }
        }
        Ok(())
    }

    async fn moment(&self, session: &SessionId, seq: u64) -> Result<Option<Checkpoint>, JournalError> {
        let Some(stored) = self.stored(session) else { return Ok(None) };
        let events = lock(&stored.events);
        let found = events.moments.range(..=seq).next_back();
        Ok(found.map(|(seq, state)| Checkpoint { seq: *seq, state: state.clone() }))
    }

    async fn store_moment(&self, session: &SessionId, moment: Checkpoint) -> Result<(), JournalError> {
        if let Some(stored) = self.stored(session) {
            lock(&stored.events).moments.insert(moment.seq, moment.state);
        }
        Ok(())
    }

    async fn add_link(&self, link: Link) -> Result<bool, JournalError> {
        // Held until it is stored, so that the session is not deleted meanwhile.
        let sessions = lock(&self.sessions);
        let is_known =
            sessions.get(&link.session).is_some_and(|stored| lock(&stored.events).position.last > 0);
        let mut links = lock(&self.links);
        links.retain(|_, earlier| !earlier.is_over(link.created_at));
        if is_known {
            links.insert(link.id.clone(), link);
        }
        Ok(is_known)
    }

    async fn link(&self, id: &LinkId) -> Result<Option<Link>, JournalError> {
        Ok(lock(&self.links).get(id).cloned())
    }

    async fn links(&self, session: &SessionId) -> Result<Vec<Link>, JournalError> {
        let links = lock(&self.links);
        let mut found: Vec<_> = links.values().filter(|link| link.session == *session).cloned().collect();
        found.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(found)
    }

    async fn remove_link(&self, id: &LinkId) -> Result<bool, JournalError> {
        Ok(lock(&self.links).remove(id).is_some())
    }

    async fn sizes(&self) -> Result<Vec<(SessionId, u64)>, JournalError> {
        let (sessions, data) = (lock(&self.sessions), lock(&self.data));
        let size = |(id, stored): (&SessionId, &Arc<StoredSession>)| {
            let events = &lock(&stored.events).stored;
            let events: usize = events.iter().map(|event| event.to_json().len()).sum();
            let data: usize = data.iter().filter(|((of, _), _)| of == id).map(|(_, bytes)| bytes.len()).sum();
            (id.clone(), (events + data) as u64)
        };
        Ok(sessions.iter().map(size).filter(|(_, size)| *size > 0).collect())
    }

    async fn store_data(&self, session: &SessionId, id: &DataId, bytes: Bytes) -> Result<bool, JournalError> {
        let sessions = lock(&self.sessions);
        let has_begun = |session: &SessionId| {
            sessions.get(session).is_some_and(|stored| lock(&stored.events).position.last > 0)
        };
        let mut data = lock(&self.data);
        if !has_begun(session) {
            let waits = |of: &SessionId| of.tenant() == session.tenant() && !has_begun(of);
            let waiting = data.iter().filter(|((of, _), _)| waits(of)).map(|(_, bytes)| bytes.len() as u64);
            if waiting.sum::<u64>() + bytes.len() as u64 > MAX_WAITING_DATA {
                return Ok(false);
            }
        }
        data.entry((session.clone(), id.clone())).or_insert(bytes);
        Ok(true)
    }

    async fn data_size(&self, session: &SessionId, id: &DataId) -> Result<Option<u64>, JournalError> {
        Ok(lock(&self.data).get(&(session.clone(), id.clone())).map(|bytes| bytes.len() as u64))
    }

    async fn data(
        &self,
        session: &SessionId,
        id: &DataId,
        part: Range<u64>,
    ) -> Result<Option<Bytes>, JournalError> {
        let data = lock(&self.data);
        let found = data.get(&(session.clone(), id.clone()));
        Ok(found.map(|bytes| {
            let end = part.end.min(bytes.len() as u64) as usize;
            bytes.slice((part.start as usize).min(end)..end)
        }))
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, JournalError> {
        let mut sessions = lock(&self.sessions);
        let Some(stored) = sessions.get(session) else { return Ok(false) };
        if stored.is_open.load(Ordering::Acquire) {
            return Err(JournalError::Busy { session: session.clone() });
        }
        let was_there = lock(&stored.events).position.last > 0;
        sessions.remove(session);
        lock(&self.claims).retain(|_, claim| claim.session != *session);
        lock(&self.links).retain(|_, link| link.session != *session);
        lock(&self.queued).retain(|run| run.session != *session);
        lock(&self.data).retain(|(of, _), _| of != session);
        Ok(was_there)
    }

    async fn retain(&self, retention: &Retention, now: Timestamp) -> Result<u64, JournalError> {
        let mut dropped = 0;
        for stored in lock(&self.sessions).values() {
            let mut events = lock(&stored.events);
            let mut cut = Cut::new(retention, events.position.last, now);
            for event in &events.stored {
                if !cut.apply(event) {
                    break;
                }
            }
            let before = events.stored.len();
            events.stored.retain(|event| event.seq > cut.through());
            let removed = (before - events.stored.len()) as u64;
            if removed > 0 {
                events.checkpoint = None;
                events.moments.clear();
            }
            dropped += removed;
        }
        Ok(dropped)
    }

    async fn flush(&self) -> Result<(), JournalError> {
        Ok(())
    }

    async fn close(&self) -> Result<(), JournalError> {
        self.is_closed.store(true, Ordering::Release);
        let sessions = lock(&self.sessions);
        sessions.values().for_each(|stored| lock(&stored.events).is_closed = true);
        Ok(())
    }
}

/// The record of an open session.
struct MemoryRecord {
    stored: Arc<StoredSession>,
    position: Position,
    capacity: Option<u64>,
}

impl Record for MemoryRecord {
    fn position(&self) -> Position {
        self.position.clone()
    }

    fn append(&self, event: &AgentEvent) {
        lock(&self.stored.events).append(event, self.capacity);
    }

    fn committed(&self) -> u64 {
        lock(&self.stored.events).position.last
    }

    fn failure(&self) -> Option<Arc<str>> {
        lock(&self.stored.events).failure.clone()
    }

    fn watch(&self, _: Waker) {
        // Only `append` changes anything.
    }

    fn read(&self, from: u64, through: u64) -> BoxFuture<'static, Page> {
        let events = lock(&self.stored.events);
        let mut page = events.range(from, MAX_PAGE).to_vec();
        page.retain(|event| event.seq <= through);
        let through =
            if page.len() < MAX_PAGE { through } else { page.last().map_or(through, |event| event.seq) };
        ready(Page { events: page, through }).boxed()
    }
}

impl Drop for MemoryRecord {
    fn drop(&mut self) {
        self.stored.is_open.store(false, Ordering::Release);
    }
}
