//! What the log's lock protects: the ring, the readers, the producers that wait.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    task::Waker,
};

use mainstem_message::RunId;
use smallvec::SmallVec;

use super::{
    queue::Queue,
    reader::{Reader, ReaderId},
};
use crate::{AgentEvent, EventKind, Origin};

/// To be woken once the lock is free.
pub(crate) type Wakers = SmallVec<[Waker; 2]>;

/// What the log knows when it is about to stamp an event.
pub(crate) struct Moment<'a> {
    /// The run that is active.
    pub(crate) run: Option<&'a RunId>,
    streams: &'a mut u64,
}

impl Moment<'_> {
    /// The number of an invocation that starts now.
    pub(crate) fn next_stream(&mut self) -> u64 {
        *self.streams += 1;
        *self.streams
    }
}

pub(crate) struct State {
    /// In whose name gaps are made.
    session: Arc<Origin>,
    pub(crate) last: u64,
    /// From the root's `AGENT_START` to its `AGENT_END`.
    run: Option<RunId>,
    /// Invocations of children that have started.
    streams: u64,
    capacity: usize,
    ring: VecDeque<AgentEvent>,
    readers: BTreeMap<ReaderId, Reader>,
    next_reader: ReaderId,
    /// The reader for which foreground events are kept and producers wait.
    caller: Option<ReaderId>,
    /// No reader is before this; may be behind the truth, never ahead of it.
    slowest: u64,
    parked: usize,
    /// The producers that wait for the caller.
    pub(crate) queue: Queue,
}

impl State {
    pub(super) fn new(session: Arc<Origin>, capacity: usize) -> Self {
        Self {
            session,
            last: 0,
            run: None,
            streams: 0,
            capacity,
            ring: VecDeque::new(),
            readers: BTreeMap::new(),
            next_reader: 0,
            caller: None,
            slowest: u64::MAX,
            parked: 0,
            queue: Queue::default(),
        }
    }

    pub(super) fn moment(&mut self) -> Moment<'_> {
        Moment { run: self.run.as_ref(), streams: &mut self.streams }
    }

    pub(super) fn push(&mut self, event: AgentEvent) {
        self.last = event.seq;
        match &event.kind {
            EventKind::AgentStart { .. } if event.is_root() => self.run = event.origin.run_id.clone(),
            EventKind::AgentEnd { .. } if event.is_root() => self.run = None,
            _ => {}
        }
        if self.ring.len() == self.capacity
            && let Some(oldest) = self.ring.pop_front()
        {
            self.evict(&oldest);
        }
        self.ring.push_back(event);
    }

    /// Tells the readers that have not yet read it.
    fn evict(&mut self, event: &AgentEvent) {
        if event.seq < self.slowest {
            return;
        }
        for (id, reader) in &mut self.readers {
            reader.miss(event, self.caller == Some(*id));
        }
        self.slowest = self.readers.values().map(Reader::next).min().unwrap_or(u64::MAX);
    }

    fn first_in_ring(&self) -> u64 {
        self.last + 1 - self.ring.len() as u64
    }

    pub(super) fn add_reader(&mut self, next: u64) -> ReaderId {
        let id = self.next_reader;
        self.next_reader += 1;
        self.readers.insert(id, Reader::new(next, self.ring.front()));
        self.slowest = self.slowest.min(next);
        id
    }

    pub(super) fn is_caller(&self, id: ReaderId) -> bool {
        self.caller == Some(id)
    }

    pub(super) fn set_caller(&mut self, id: Option<ReaderId>) {
        self.caller = id;
    }

    /// The next event of a reader, if there is one.
    pub(super) fn read(&mut self, id: ReaderId) -> Option<AgentEvent> {
        let first = self.first_in_ring();
        let reader = self.readers.get_mut(&id)?;
        reader.read_kept(&self.session).or_else(|| {
            let event = self.ring.get(usize::try_from(reader.next().checked_sub(first)?).ok()?)?;
            reader.pass(event.seq);
            Some(event.clone())
        })
    }

    /// Wakes a reader at the next event; returns the waker that this replaces.
    pub(super) fn park(&mut self, id: ReaderId, waker: &Waker) -> Option<Waker> {
        let reader = self.readers.get_mut(&id)?;
        if reader.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            return None;
        }
        let stale = reader.waker.replace(waker.clone());
        self.parked += usize::from(stale.is_none());
        stale
    }

    pub(super) fn unpark(&mut self, id: ReaderId) -> Option<Waker> {
        if self.parked == 0 {
            return None;
        }
        let stale = self.readers.get_mut(&id)?.waker.take();
        self.parked -= usize::from(stale.is_some());
        stale
    }

    pub(super) fn take_parked(&mut self) -> Wakers {
        if std::mem::take(&mut self.parked) == 0 {
            return Wakers::new();
        }
        self.readers.values_mut().filter_map(|reader| reader.waker.take()).collect()
    }

    pub(crate) fn next_of(&self, id: ReaderId) -> u64 {
        self.readers.get(&id).map_or(self.last + 1, Reader::next)
    }

    /// Takes a reader out, to be dropped once the lock is free.
    pub(super) fn remove_reader(&mut self, id: ReaderId) -> Option<Reader> {
        let reader = self.readers.remove(&id)?;
        self.parked -= usize::from(reader.waker.is_some());
        Some(reader)
    }

    /// The caller has read `seq`: one may go on; all of them once there is nothing left to read, for nothing else would wake them.
    pub(super) fn grant_for(&mut self, seq: u64) -> Wakers {
        if seq < self.last { self.queue.grant().into_iter().collect() } else { self.queue.grant_all() }
    }
}
