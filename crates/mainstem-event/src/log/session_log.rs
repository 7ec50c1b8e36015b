//! The one place that orders: numbers events, stamps them, retains the latest, and holds producers
//! back when the caller is behind.

mod ahead;
mod hold;
mod observe;
mod queue;
mod reader;
mod recorded;
mod state;

use std::{
    fmt,
    sync::{Arc, PoisonError, atomic::Ordering},
    task::Waker,
};

use futures_util::StreamExt;
use mainstem_message::SessionId;
use serde_json::{Map, Value};

use self::{
    ahead::Ahead,
    reader::Reach,
    recorded::Recorded,
    state::{Readers, State, Wakers},
};
pub(crate) use self::{
    queue::Ticket,
    reader::{Read, ReaderId},
    state::Moment,
};
use crate::{
    AgentEvent, Clock, EventKind, Origin, Position, Record, SystemClock, Timestamp,
    log::sync::{AtomicU64, Mutex, MutexGuard},
};

/// The bounds of a session log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogOptions {
    /// How many of the latest events every reader can still get. Default 4096, at least 1.
    pub ring: usize,
    /// How many events foreground work may be ahead of the caller. Default 64, at least 1; each
    /// live producer may add one, and one of them a batch of up to 16.
    pub buffer: usize,
    /// How many bytes of content foreground work may be ahead of the caller. Default 1 MiB, at
    /// least 1; each live producer may add one event.
    pub buffer_bytes: usize,
    /// How many events may wait for the record, if there is one, before producers wait for it.
    /// Default 4096, at least 1; each live producer may add one.
    pub lag: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { ring: 4096, buffer: 64, buffer_bytes: 1 << 20, lag: 4096 }
    }
}

/// What an event says: its kind, and metadata.
type What = (EventKind, Option<Map<String, Value>>);

/// The events of one session, in order.
///
/// Every event of every agent of the session is recorded here, by
/// [`EventSink::emit`](crate::EventSink::emit), and read from here, by
/// [`Cursor`](crate::Cursor)s. Recording never waits and never fails. The ring drops the oldest
/// events; readers that are behind get a [`Gap`](EventKind::Gap) instead. For the *caller's*
/// cursor ([`attach`](Self::attach)) foreground events are retained however far it is behind, and
/// in return [`EventSink::settle`](crate::EventSink::settle) holds foreground producers back.
///
/// With a [`Record`] ([`with_record`](Self::with_record)), readers get events that the ring has
/// dropped from the record, and a gap only if the record has dropped them, too. [Durable
/// events](EventKind::is_durable), with all events after them, are hidden from readers until they
/// are committed. A record that is slow holds all producers back; one that fails ends the run with
/// an error.
///
/// ```
/// use mainstem_event::{EventKind, SessionLog};
///
/// let log = SessionLog::new("session-1".parse()?);
/// let mut reader = log.subscribe();
/// log.emit(EventKind::Custom { name: "step".into(), value: 1.into() });
///
/// let event = reader.try_next().expect("what was emitted");
/// assert_eq!((event.seq, event.kind.name()), (1, "CUSTOM"));
/// assert!(reader.try_next().is_none());
/// # Ok::<(), mainstem_message::IdError>(())
/// ```
pub struct SessionLog {
    session_id: SessionId,
    clock: Arc<dyn Clock>,
    ahead: Ahead,
    /// The number of the last event, which `settle` reads without the lock.
    head: AtomicU64,
    /// The number of producers in the queue.
    waiting: Arc<AtomicU64>,
    recorded: Option<Box<Recorded>>,
    state: Mutex<State>,
}

impl SessionLog {
    /// Creates an empty log with the machine's clock.
    pub fn new(session_id: SessionId) -> Arc<Self> {
        Self::with(session_id, Arc::new(SystemClock), LogOptions::default())
    }

    /// Creates an empty log.
    pub fn with(session_id: SessionId, clock: Arc<dyn Clock>, options: LogOptions) -> Arc<Self> {
        Arc::new(Self::made(session_id, clock, &options, Position::default(), None))
    }

    /// Creates a log that continues after the events of its record, and appends its events there.
    ///
    /// It continues the numbers of the record, in the run that was active at its end, if there was
    /// one. [`subscribe_from`](Self::subscribe_from) can read the recorded events at once.
    pub fn with_record(
        session_id: SessionId,
        clock: Arc<dyn Clock>,
        options: LogOptions,
        record: Arc<dyn Record>,
    ) -> Arc<Self> {
        let position = record.position();
        let recorded = Box::new(Recorded::new(record.clone(), options.lag));
        let log = Arc::new(Self::made(session_id, clock, &options, position, Some(recorded)));
        record.watch(recorded::waker(&log));
        log.progressed();
        log
    }

    fn made(
        session_id: SessionId,
        clock: Arc<dyn Clock>,
        options: &LogOptions,
        position: Position,
        recorded: Option<Box<Recorded>>,
    ) -> Self {
        let session = Arc::new(Origin::session(session_id.clone(), None));
        let state = State::new(session, options.ring.max(1), position.clone());
        Self {
            session_id,
            clock,
            ahead: Ahead::new(options.buffer, options.buffer_bytes),
            head: AtomicU64::new(position.last),
            waiting: state.queue.waiting(),
            recorded,
            state: Mutex::new(state),
        }
    }

    /// Returns the session.
    pub fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Returns the clock of its timestamps.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Sets how many events foreground work may be ahead of the caller; at least 1. See
    /// [`LogOptions::buffer`].
    pub fn set_buffer(&self, events: usize) {
        self.ahead.set_buffer(events);
    }

    /// Returns the number of the latest event; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// Returns why the record has failed, as a sentence; `None` without a record or a failure.
    /// After a failure the log continues in memory, for the endings; agents should stop.
    pub fn failure(&self) -> Option<&Arc<str>> {
        self.recorded.as_ref()?.failure()
    }

    /// Returns the number up to which the record has all events; `None` without a record.
    pub fn committed(&self) -> Option<u64> {
        Some(self.recorded.as_ref()?.committed())
    }

    /// Waits until the record has committed the events up to `seq`; returns at once without a
    /// record. Returns `false` if the record has failed before.
    ///
    /// Dropping the future changes nothing.
    pub async fn until_committed(self: &Arc<Self>, seq: u64) -> bool {
        let is_committed = || self.committed().is_none_or(|committed| committed >= seq);
        if !is_committed() {
            self.committed_from(seq).next().await;
        }
        is_committed()
    }

    /// Records a session-level event, one that belongs to no invocation, and returns its number.
    pub fn emit(&self, kind: EventKind) -> u64 {
        let origin = |now: Moment<'_>| Arc::new(Origin::session(self.session_id.clone(), now.run.cloned()));
        self.append_in((kind, None), origin).0
    }

    pub(crate) fn append(&self, origin: &Arc<Origin>, what: What) -> (u64, Timestamp) {
        self.append_in(what, |_| origin.clone())
    }

    /// Records an event whose origin depends on the state of the log: the active run, or the number
    /// of the next invocation.
    pub(crate) fn append_in(
        &self,
        (kind, metadata): What,
        origin: impl FnOnce(Moment<'_>) -> Arc<Origin>,
    ) -> (u64, Timestamp) {
        let at = self.clock.now();
        let mut state = self.lock();
        let seq = state.last + 1;
        let origin = origin(state.moment());
        let mut event = AgentEvent::new(seq, at, origin, kind);
        if let Some(metadata) = metadata {
            event = event.with_metadata(metadata);
        }
        self.push(state, event);
        (seq, at)
    }

    /// Adds an event that another log has numbered. For a copy of a session that another process
    /// writes; a log with events of its own has other numbers.
    ///
    /// Returns `false`, and adds nothing, if it is not the next event.
    #[must_use]
    pub fn copy(&self, event: AgentEvent) -> bool {
        let state = self.lock();
        let is_next = event.seq == state.last + 1;
        if is_next {
            self.push(state, event);
        }
        is_next
    }

    fn push(&self, mut state: MutexGuard<'_, State>, event: AgentEvent) {
        let seq = event.seq;
        self.ahead.appended(&event);
        let mut woken = Wakers::new();
        match &self.recorded {
            None => state.push(event),
            Some(recorded) => woken = state.push_recorded(event, recorded),
        }
        self.head.store(seq, Ordering::Release);
        if state.has_parked() && !state.hold.is_on() {
            let is_committed = self.committed().is_none_or(|committed| committed >= seq);
            woken.extend(state.take_parked(if is_committed { Readers::All } else { Readers::Eager }));
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Returns how far the record reaches.
    fn reach(&self) -> Option<Reach> {
        let recorded = self.recorded.as_ref()?;
        // Read before `committed`: after a failure that number is final.
        let is_final = recorded.failure().is_some();
        Some(Reach { committed: recorded.committed(), is_final })
    }

    /// Returns the record.
    pub(crate) fn record(&self) -> Option<&Arc<dyn Record>> {
        Some(&self.recorded.as_ref()?.record)
    }

    /// Wakes the readers and producers that wait for the record, after it has committed more or
    /// failed.
    pub(crate) fn progressed(&self) {
        let Some(recorded) = &self.recorded else { return };
        let failure = recorded.poll();
        let mut state = self.lock();
        let mut woken = match failure {
            None => state.recorded(recorded.committed()),
            Some(why) => state.unrecorded(why),
        };
        if self.is_idle() {
            woken.extend(state.queue.grant_all());
        } else if self.record_has_room() {
            woken.extend(state.queue.grant_moved());
            woken.extend(self.next_turn(&mut state));
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Returns `true` if the record, if there is one, keeps up with all producers.
    pub(crate) fn record_has_room(&self) -> bool {
        self.recorded.as_ref().is_none_or(|recorded| recorded.has_room(self.last_seq()))
    }

    /// Returns `true` if neither the caller nor the record has events to read.
    pub(crate) fn is_idle(&self) -> bool {
        self.record_has_room() && self.ahead.is_empty(self.last_seq())
    }

    /// Returns `true` if a producer may go on whose batch reaches up to the event `until`. After
    /// its batch it may if the caller keeps up and no producer waits for its turn.
    pub(crate) fn has_room(&self, until: u64) -> bool {
        let head = self.last_seq();
        let may = head < until || self.waiting.load(Ordering::Acquire) == 0;
        may && self.ahead.has_room(head, until)
    }

    /// Returns the event up to which a batch reaches that begins now.
    pub(crate) fn end_of_batch(&self) -> u64 {
        self.ahead.end_of_batch(self.last_seq())
    }

    /// Ends the wait of a producer that was woken, because it continues or gives up. Returns the
    /// next producer to wake: the first may have nothing to emit, so that no read would wake it.
    pub(crate) fn end_turn(&self, state: &mut State, ticket: Ticket) -> Option<Waker> {
        if state.queue.take_turn(ticket) { self.next_turn(state) } else { None }
    }

    /// Removes the producer whose turn it is from the queue, if there is room for its batch, and
    /// returns its waker.
    pub(crate) fn next_turn(&self, state: &mut State) -> Option<Waker> {
        let has_room =
            self.record_has_room() && self.ahead.has_room_for_batch(self.last_seq(), state.queue.woken());
        if has_room { state.queue.grant() } else { None }
    }

    /// Wakes the producers whose subtree has moved to the background.
    pub(crate) fn release(&self) {
        let moved = self.lock().queue.grant_moved();
        moved.into_iter().for_each(Waker::wake);
    }

    /// Ignores poisoning: a panic elsewhere must not stop a session, and no state here is left half
    /// written.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SessionLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session_id, .. } = self;
        f.debug_struct("SessionLog")
            .field("session_id", session_id)
            .field("last", &self.last_seq())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, shuttle))]
mod models;
#[cfg(test)]
mod tests;
