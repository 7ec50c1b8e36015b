//! Where one reader stands, and what is kept or counted for it once the ring has passed it by.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    task::Waker,
};

use crate::{AgentEvent, EventKind, Origin, Timestamp};

pub(crate) type ReaderId = u64;

pub(super) struct Reader {
    next: u64,
    /// Whether foreground events are kept for it: the caller. They are few, for their producers wait.
    keeps: bool,
    behind: VecDeque<Kept>,
    pub(super) waker: Option<Waker>,
}

enum Kept {
    Event(AgentEvent),
    Hole(Hole),
}

/// Events in a row that the reader can't have any more.
struct Hole {
    from: u64,
    to: u64,
    at: Timestamp,
    per_agent: BTreeMap<String, u64>,
}

impl Reader {
    /// `oldest` is the first event in the ring.
    pub(super) fn new(next: u64, keeps: bool, oldest: Option<&AgentEvent>) -> Self {
        let mut reader = Self { next, keeps, behind: VecDeque::new(), waker: None };
        if let Some(oldest) = oldest.filter(|oldest| next < oldest.seq) {
            let hole = Hole { from: next, to: oldest.seq - 1, at: oldest.at, per_agent: BTreeMap::new() };
            reader.behind.push_back(Kept::Hole(hole));
        }
        reader
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn pass(&mut self, seq: u64) {
        self.next = seq + 1;
    }

    /// The ring lets go of an event.
    pub(super) fn miss(&mut self, event: &AgentEvent) {
        if event.seq < self.next {
            return;
        }
        if self.keeps && event.source().is_none_or(|source| source.task_id.is_none()) {
            self.behind.push_back(Kept::Event(event.clone()));
        } else if let Some(Kept::Hole(hole)) = self.behind.back_mut() {
            hole.count(event);
        } else {
            let mut hole = Hole { from: event.seq, to: event.seq, at: event.at, per_agent: BTreeMap::new() };
            hole.count(event);
            self.behind.push_back(Kept::Hole(hole));
        }
    }

    /// What was kept for it, before what is in the ring; a hole as a [`Gap`](EventKind::Gap) in the name of `session`.
    pub(super) fn read_kept(&mut self, session: &Arc<Origin>) -> Option<AgentEvent> {
        let event = match self.behind.pop_front()? {
            Kept::Event(event) => event,
            Kept::Hole(hole) => hole.into_gap(session.clone()),
        };
        self.pass(event.seq);
        Some(event)
    }
}

impl Hole {
    fn count(&mut self, event: &AgentEvent) {
        (self.to, self.at) = (event.seq, event.at);
        let agent = event.agent_key().map_or("root", |key| key.as_str());
        match self.per_agent.get_mut(agent) {
            Some(count) => *count += 1,
            None => _ = self.per_agent.insert(agent.to_owned(), 1),
        }
    }

    fn into_gap(self, session: Arc<Origin>) -> AgentEvent {
        let (from_seq, to_seq) = (self.from, self.to);
        let kind =
            EventKind::Gap { from_seq, to_seq, missed: to_seq - from_seq + 1, per_agent: self.per_agent };
        AgentEvent::new(to_seq, self.at, session, kind)
    }
}
