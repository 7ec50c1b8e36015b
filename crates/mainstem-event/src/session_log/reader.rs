//! Where one reader stands, and what is kept or counted for it once the ring has passed it by.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    task::Waker,
};

use mainstem_message::AgentKey;

use crate::{AgentEvent, EventKind, Origin, Timestamp};

pub(crate) type ReaderId = u64;

pub(super) struct Reader {
    next: u64,
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
    /// Not known for events that were gone before the reader came.
    per_agent: Option<HashMap<Option<AgentKey>, u64>>,
}

impl Reader {
    /// `oldest` is the first event in the ring.
    pub(super) fn new(next: u64, oldest: Option<&AgentEvent>) -> Self {
        let mut reader = Self { next, behind: VecDeque::new(), waker: None };
        if let Some(oldest) = oldest.filter(|oldest| next < oldest.seq) {
            let hole = Hole { from: next, to: oldest.seq - 1, at: oldest.at, per_agent: None };
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

    /// The ring lets go of an event. For the caller, those of the foreground are kept: they are few, for their producers wait.
    pub(super) fn miss(&mut self, event: &AgentEvent, is_caller: bool) {
        if event.seq < self.next {
            return;
        }
        if is_caller && event.source().is_none_or(|source| source.task_id.is_none()) {
            self.behind.push_back(Kept::Event(event.clone()));
        } else if let Some(Kept::Hole(hole)) = self.behind.back_mut() {
            hole.count(event);
        } else {
            let mut hole =
                Hole { from: event.seq, to: event.seq, at: event.at, per_agent: Some(HashMap::new()) };
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
        if let Some(per_agent) = &mut self.per_agent {
            *per_agent.entry(event.agent_key().cloned()).or_default() += 1;
        }
    }

    fn into_gap(self, session: Arc<Origin>) -> AgentEvent {
        let name = |key: Option<AgentKey>| key.map_or_else(|| "root".to_owned(), |key| key.to_string());
        let per_agent = self.per_agent.into_iter().flatten().map(|(key, count)| (name(key), count)).collect();
        let (from_seq, to_seq) = (self.from, self.to);
        let kind = EventKind::Gap { from_seq, to_seq, missed: to_seq - from_seq + 1, per_agent };
        AgentEvent::new(to_seq, self.at, session, kind)
    }
}
