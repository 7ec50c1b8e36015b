//! The state under the log's lock: the ring, the readers, the waiting producers.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    task::Waker,
};

use mainstem_message::RunId;
use smallvec::SmallVec;

use super::{
    hold::Hold,
    queue::Queue,
    reader::{Reach, Read, Reader, ReaderId},
    recorded::{Recorded, Taken, amended},
};
use crate::{AgentEvent, Origin, Position, Timestamp};

/// Wakers to wake once the lock is released.
pub(crate) type Wakers = SmallVec<[Waker; 2]>;

/// The log's state at the moment of an event.
pub(crate) struct Moment<'a> {
    /// The active run.
    pub(crate) run: Option<&'a RunId>,
    streams: &'a mut u64,
}

impl Moment<'_> {
    /// Returns the number of an invocation that starts now.
    pub(crate) fn next_stream(&mut self) -> u64 {
        *self.streams += 1;
        *self.streams
    }
}

/// A set of waiting readers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Readers {
    All,
    /// Those that see uncommitted events.
    Eager,
}

pub(crate) struct State {
    /// The origin of gaps.
    session: Arc<Origin>,
    pub(crate) last: u64,
    /// The time of the events before the log was opened.
    opened_at: Timestamp,
    /// From the root's `AGENT_START` to its `AGENT_END`.
    run: Option<RunId>,
    /// The number of children's invocations that have started.
    streams: u64,
    capacity: usize,
    ring: VecDeque<AgentEvent>,
    readers: BTreeMap<ReaderId, Reader>,
    next_reader: ReaderId,
    /// The reader for which foreground events are retained and producers wait.
    caller: Option<ReaderId>,
    /// A lower bound of the readers' positions.
    slowest: u64,
    parked: usize,
    /// Events that are hidden until the record has committed them.
    pub(super) hold: Hold,
    /// Whether a reader waits for the record rather than for an event.
    stalled: bool,
    /// The producers that wait for the caller or the record.
    pub(crate) queue: Queue,
}

impl State {
    pub(super) fn new(session: Arc<Origin>, capacity: usize, position: Position) -> Self {
        let Position { last, at: opened_at, run, streams } = position;
        Self {
            session,
            last,
            opened_at,
            run,
            streams,
            capacity,
            ring: VecDeque::new(),
            readers: BTreeMap::new(),
            next_reader: 0,
            caller: None,
            slowest: u64::MAX,
            parked: 0,
            hold: Hold::default(),
            stalled: false,
            queue: Queue::default(),
        }
    }

    pub(super) fn moment(&mut self) -> Moment<'_> {
        Moment { run: self.run.as_ref(), streams: &mut self.streams }
    }

    pub(super) fn push(&mut self, event: AgentEvent) {
        self.last = event.seq;
        if event.is_run_start() {
            self.run = event.origin.run_id.clone();
        } else if event.is_run_end() {
            self.run = None;
        }
        if self.ring.len() == self.capacity
            && let Some(oldest) = self.ring.pop_front()
        {
            self.evict(&oldest);
        }
        self.ring.push_back(event);
    }

    /// Adds an event, and appends it to the record. If the record has failed, all waiting producers
    /// are woken, because no commit will wake them.
    pub(super) fn push_recorded(&mut self, event: AgentEvent, recorded: &Recorded) -> Wakers {
        match (recorded.take(&event), recorded.failure()) {
            (Taken::Failed, Some(why)) => {
                self.push(amended(event, why));
                let mut woken = self.unrecorded(why);
                woken.extend(self.queue.grant_all());
                return woken;
            }
            (Taken::Held, _) => self.hold.add(event.seq),
            _ => {}
        }
        self.push(event);
        Wakers::new()
    }

    /// Notifies the readers that have not yet read it.
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

    pub(super) fn add_reader(&mut self, next: u64, from_record: bool) -> ReaderId {
        let id = self.next_reader;
        self.next_reader += 1;
        let oldest = self.ring.front().map_or(self.opened_at, |event| event.at);
        self.readers.insert(id, Reader::new(next, from_record).late(self.first_in_ring(), oldest));
        self.slowest = self.slowest.min(next);
        id
    }

    /// Limits a reader to committed events.
    pub(super) fn set_committed_only(&mut self, id: ReaderId) {
        if let Some(reader) = self.readers.get_mut(&id) {
            reader.is_committed_only = true;
        }
    }

    pub(super) fn is_caller(&self, id: ReaderId) -> bool {
        self.caller == Some(id)
    }

    pub(super) fn set_caller(&mut self, id: Option<ReaderId>) {
        self.caller = id;
    }

    /// Returns the next event of a reader, if it is visible to it.
    pub(super) fn read(&mut self, id: ReaderId, reach: Option<Reach>) -> Read {
        let first = self.first_in_ring();
        let Some(reader) = self.readers.get_mut(&id) else { return Read::Nothing };
        if reader.next() >= self.hold.first() {
            return Read::Nothing;
        }
        if reader.is_ended(reach) {
            return Read::End;
        }
        if reader.waits_for(reach) {
            self.stalled = true;
            return Read::Nothing;
        }
        if let Some(found) = reader.read_missed(&self.session, reach) {
            self.stalled |= matches!(found, Read::Nothing);
            return found;
        }
        let index = reader.next().checked_sub(first).and_then(|index| usize::try_from(index).ok());
        let Some(event) = index.and_then(|index| self.ring.get(index)) else { return Read::Nothing };
        reader.pass(event.seq);
        Read::Event(event.clone())
    }

    /// Notes that a reader has got the record's events up to this.
    pub(super) fn filled(&mut self, id: ReaderId, through: u64) {
        if let Some(reader) = self.readers.get_mut(&id) {
            reader.filled(through);
        }
    }

    /// Applies the record's progress; returns the wakers of readers and producers that can
    /// continue.
    pub(super) fn recorded(&mut self, committed: u64) -> Wakers {
        let was_stalled = std::mem::take(&mut self.stalled);
        if self.hold.pass(committed) || was_stalled { self.take_parked(Readers::All) } else { Wakers::new() }
    }

    /// Applies the record's failure: amends the hidden events, then shows all.
    pub(super) fn unrecorded(&mut self, why: &Arc<str>) -> Wakers {
        let first = self.hold.first();
        self.hold = Hold::default();
        self.stalled = false;
        let amend = |event: &mut AgentEvent| {
            if event.seq >= first {
                *event = amended(event.clone(), why);
            }
        };
        self.ring.iter_mut().for_each(amend);
        self.readers.values_mut().for_each(|reader| reader.amend(&amend));
        self.take_parked(Readers::All)
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

    pub(super) fn has_parked(&self) -> bool {
        self.parked > 0
    }

    pub(super) fn take_parked(&mut self, which: Readers) -> Wakers {
        if self.parked == 0 {
            return Wakers::new();
        }
        let readers = self.readers.values_mut();
        let meant = readers.filter(|reader| which == Readers::All || !reader.is_committed_only);
        let woken: Wakers = meant.filter_map(|reader| reader.waker.take()).collect();
        self.parked -= woken.len();
        woken
    }

    pub(crate) fn next_of(&self, id: ReaderId) -> u64 {
        self.readers.get(&id).map_or(self.last + 1, Reader::next)
    }

    /// Removes a reader, which is dropped once the lock is released.
    pub(super) fn remove_reader(&mut self, id: ReaderId) -> Option<Reader> {
        let reader = self.readers.remove(&id)?;
        self.parked -= usize::from(reader.waker.is_some());
        Some(reader)
    }
}
