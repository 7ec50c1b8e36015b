//! What the log's lock protects: the ring, the readers, the producers that wait.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    task::Waker,
};

use super::reader::{Reader, ReaderId};
use crate::{AgentEvent, Origin};

pub(crate) struct State {
    /// In whose name gaps are made.
    session: Arc<Origin>,
    pub(crate) last: u64,
    capacity: usize,
    ring: VecDeque<AgentEvent>,
    readers: BTreeMap<ReaderId, Reader>,
    next_reader: ReaderId,
    /// No reader is before this; may be behind the truth, never ahead of it.
    slowest: u64,
    parked: usize,
    /// Producers in the order in which they came; one that is no longer in here may go on.
    waiting: BTreeMap<u64, Waker>,
    next_ticket: u64,
}

impl State {
    pub(super) fn new(session: Arc<Origin>, capacity: usize) -> Self {
        Self {
            session,
            last: 0,
            capacity,
            ring: VecDeque::new(),
            readers: BTreeMap::new(),
            next_reader: 0,
            slowest: u64::MAX,
            parked: 0,
            waiting: BTreeMap::new(),
            next_ticket: 0,
        }
    }

    pub(super) fn push(&mut self, event: AgentEvent) {
        self.last = event.seq;
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
        self.readers.values_mut().for_each(|reader| reader.miss(event));
        self.slowest = self.readers.values().map(Reader::next).min().unwrap_or(u64::MAX);
    }

    fn first_in_ring(&self) -> u64 {
        self.last + 1 - self.ring.len() as u64
    }

    pub(super) fn add_reader(&mut self, next: u64, keeps: bool) -> ReaderId {
        let id = self.next_reader;
        self.next_reader += 1;
        self.readers.insert(id, Reader::new(next, keeps, self.ring.front()));
        self.slowest = self.slowest.min(next);
        id
    }

    /// The next event of a reader, if there is one; the reader is then no longer parked.
    pub(crate) fn read(&mut self, id: ReaderId) -> Option<AgentEvent> {
        let first = self.first_in_ring();
        let reader = self.readers.get_mut(&id)?;
        if reader.waker.take().is_some() {
            self.parked -= 1;
        }
        reader.read_kept(&self.session).or_else(|| {
            let event = self.ring.get(usize::try_from(reader.next().checked_sub(first)?).ok()?)?;
            reader.pass(event.seq);
            Some(event.clone())
        })
    }

    /// Wakes a reader at the next event.
    pub(crate) fn park(&mut self, id: ReaderId, waker: &Waker) {
        if let Some(reader) = self.readers.get_mut(&id) {
            self.parked += usize::from(reader.waker.is_none());
            reader.waker = Some(waker.clone());
        }
    }

    pub(super) fn take_parked(&mut self) -> Vec<Waker> {
        if std::mem::take(&mut self.parked) == 0 {
            return Vec::new();
        }
        self.readers.values_mut().filter_map(|reader| reader.waker.take()).collect()
    }

    pub(crate) fn next_of(&self, id: ReaderId) -> u64 {
        self.readers.get(&id).map_or(self.last + 1, Reader::next)
    }

    pub(crate) fn remove_reader(&mut self, id: ReaderId) {
        if self.readers.remove(&id).is_some_and(|reader| reader.waker.is_some()) {
            self.parked -= 1;
        }
    }

    /// A producer joins the queue.
    pub(crate) fn wait(&mut self, waker: &Waker) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting.insert(ticket, waker.clone());
        ticket
    }

    /// Whether a producer still waits; if so, with this waker.
    pub(crate) fn still_waits(&mut self, ticket: u64, waker: &Waker) -> bool {
        let Some(known) = self.waiting.get_mut(&ticket) else { return false };
        known.clone_from(waker);
        true
    }

    /// A producer gives up; `false` if it had been let on.
    pub(crate) fn leave(&mut self, ticket: u64) -> bool {
        self.waiting.remove(&ticket).is_some()
    }

    /// Lets the first of the queue go on.
    pub(crate) fn grant(&mut self) -> Option<Waker> {
        self.waiting.pop_first().map(|(_, waker)| waker)
    }

    pub(super) fn grant_all(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.waiting).into_values().collect()
    }
}
