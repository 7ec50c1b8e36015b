//! The one place that orders: numbers events, stamps them, keeps the latest, and holds producers back when the caller is behind.

mod queue;
mod reader;
mod state;

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::Waker,
};

use mainstem_message::SessionId;

use self::state::{State, Wakers};
pub(crate) use self::{queue::Ticket, reader::ReaderId, state::Moment};
use crate::{AgentEvent, Clock, Cursor, EventKind, Origin, SystemClock};

/// How much a session log keeps and lets through.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogOptions {
    /// How many of the latest events every reader can still get. Default 4096, at least 1.
    pub ring: usize,
    /// How many events foreground work may be ahead of the caller. Default 64, at least 1; each live producer may add one.
    pub buffer: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { ring: 4096, buffer: 64 }
    }
}

/// The events of one session, in order.
///
/// Everything any agent of the session does is recorded here, by [`EventSink::emit`](crate::EventSink::emit), and read from here, by
/// [`Cursor`]s. Recording never waits and never fails. What no longer fits the ring is gone for readers that are behind, who get a
/// [`Gap`](EventKind::Gap) instead; the *caller's* cursor ([`attach`](Self::attach)) keeps foreground events however far it is behind,
/// and in return [`EventSink::settle`](crate::EventSink::settle) holds foreground producers back.
pub struct SessionLog {
    session_id: SessionId,
    clock: Arc<dyn Clock>,
    buffer: AtomicU64,
    /// The last number given; what `settle` looks at without taking the lock.
    head: AtomicU64,
    /// What the caller reads next; `u64::MAX` without a caller.
    caller: AtomicU64,
    state: Mutex<State>,
}

impl SessionLog {
    /// An empty log with the machine's clock.
    pub fn new(session_id: SessionId) -> Arc<Self> {
        Self::with(session_id, Arc::new(SystemClock), LogOptions::default())
    }

    /// An empty log.
    pub fn with(session_id: SessionId, clock: Arc<dyn Clock>, options: LogOptions) -> Arc<Self> {
        let session = Arc::new(Origin::session(session_id.clone(), None));
        Arc::new(Self {
            session_id,
            clock,
            buffer: AtomicU64::new(options.buffer.max(1) as u64),
            head: AtomicU64::new(0),
            caller: AtomicU64::new(u64::MAX),
            state: Mutex::new(State::new(session, options.ring.max(1))),
        })
    }

    /// The session.
    pub fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// The clock that stamps.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// How many events foreground work may be ahead of the caller from now on; at least 1. See [`LogOptions::buffer`].
    pub fn set_buffer(&self, events: usize) {
        self.buffer.store(events.max(1) as u64, Ordering::Relaxed);
    }

    /// The number of the latest event; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// Records a session-level event, one that belongs to no invocation, and returns its number.
    pub fn emit(&self, kind: EventKind) -> u64 {
        self.append_in(kind, |now| Arc::new(Origin::session(self.session_id.clone(), now.run.cloned())))
    }

    pub(crate) fn append(&self, origin: &Arc<Origin>, kind: EventKind) -> u64 {
        self.append_in(kind, |_| origin.clone())
    }

    /// The same where the origin depends on the moment: which run is active, which invocation is the next to start.
    pub(crate) fn append_in(&self, kind: EventKind, origin: impl FnOnce(Moment<'_>) -> Arc<Origin>) -> u64 {
        let at = self.clock.now();
        let mut state = self.lock();
        let seq = state.last + 1;
        let origin = origin(state.moment());
        state.push(AgentEvent::new(seq, at, origin, kind));
        self.head.store(seq, Ordering::Release);
        let parked = state.take_parked();
        drop(state);
        parked.into_iter().for_each(Waker::wake);
        seq
    }

    /// The next event of a reader. Only if there is none, and a waker, does a waker stay behind.
    pub(crate) fn read(&self, reader: ReaderId, waker: Option<&Waker>) -> Option<AgentEvent> {
        let mut state = self.lock();
        let event = state.read(reader);
        let stale = match (&event, waker) {
            (None, Some(waker)) => state.park(reader, waker),
            _ => state.unpark(reader),
        };
        let granted = match &event {
            Some(event) if state.is_caller(reader) => {
                self.caller.store(event.seq + 1, Ordering::Release);
                state.grant_for(event.seq)
            }
            _ => Wakers::new(),
        };
        drop(state);
        drop(stale);
        granted.into_iter().for_each(Waker::wake);
        event
    }

    /// An observer: from the next event on.
    pub fn subscribe(self: &Arc<Self>) -> Cursor {
        self.subscribe_from(self.last_seq() + 1)
    }

    /// An observer that begins at `seq` (0 and 1 are the beginning); what the ring no longer has is its first [`Gap`](EventKind::Gap).
    pub fn subscribe_from(self: &Arc<Self>, seq: u64) -> Cursor {
        let reader = self.lock().add_reader(seq.max(1));
        Cursor::new(self.clone(), reader)
    }

    /// The caller: from the next event on. Producers wait for it, so it must be read, or dropped.
    ///
    /// A session has one caller at a time: the one before becomes an observer, and whoever waited for it goes on.
    pub fn attach(self: &Arc<Self>) -> Cursor {
        let mut state = self.lock();
        let next = state.last + 1;
        let reader = state.add_reader(next);
        state.set_caller(Some(reader));
        self.caller.store(next, Ordering::Release);
        let waiting = state.queue.grant_all();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        Cursor::new(self.clone(), reader)
    }

    /// A reader is gone; if it was the caller, nobody waits any more.
    pub(crate) fn remove(&self, id: ReaderId) {
        let mut state = self.lock();
        let mut waiting = Wakers::new();
        if state.is_caller(id) {
            state.set_caller(None);
            self.caller.store(u64::MAX, Ordering::Release);
            waiting = state.queue.grant_all();
        }
        let reader = state.remove_reader(id);
        drop(state);
        drop(reader);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Whether a foreground producer may go on.
    pub(crate) fn has_room(&self) -> bool {
        let (head, caller) = (self.head.load(Ordering::Acquire), self.caller.load(Ordering::Acquire));
        head.saturating_sub(caller.saturating_sub(1)) < self.buffer.load(Ordering::Relaxed)
    }

    /// Lets those go on whose subtree has moved to the background.
    pub(crate) fn release(&self) {
        let moved = self.lock().queue.grant_moved();
        moved.into_iter().for_each(Waker::wake);
    }

    /// A panic elsewhere must not silence a session: nothing in here leaves a state half written.
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

#[cfg(test)]
mod tests;
