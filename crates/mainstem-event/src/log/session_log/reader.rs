//! The position of one reader, and its missed events once the ring has passed it.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    task::Waker,
};

use mainstem_message::AgentKey;

use crate::{AgentEvent, EventKind, Origin, Timestamp, fold::ROOT};

pub(crate) type ReaderId = u64;

pub(super) struct Reader {
    next: u64,
    /// Whether missed events are read from the record, if there is one.
    from_record: bool,
    /// Whether it sees only committed events, if there is a record.
    pub(super) is_committed_only: bool,
    behind: VecDeque<Missed>,
    pub(super) waker: Option<Waker>,
}

enum Missed {
    Event(AgentEvent),
    Hole(Hole),
}

/// Consecutive events that the reader can no longer get.
struct Hole {
    from: u64,
    to: u64,
    at: Timestamp,
    /// `None` for events that were dropped before the reader came; not counted for those that it
    /// reads from the record.
    per_agent: Option<HashMap<Option<AgentKey>, u64>>,
}

/// The result of a read.
pub(crate) enum Read {
    Event(AgentEvent),
    /// No event: it has read all events, or the next ones are hidden.
    Nothing,
    /// A range to read from the record.
    Fetch {
        from: u64,
        through: u64,
    },
    /// The end: later events will not be committed.
    End,
}

/// How far the record reaches, for a log that has one.
#[derive(Clone, Copy)]
pub(crate) struct Reach {
    pub(super) committed: u64,
    /// Whether the record has failed, so that the number is final.
    pub(super) is_final: bool,
}

impl Reader {
    pub(super) fn new(next: u64, from_record: bool) -> Self {
        Self { next, from_record, is_committed_only: false, behind: VecDeque::new(), waker: None }
    }

    /// Creates a reader that comes late: the ring begins at `first`, and its oldest event has that
    /// time.
    pub(super) fn late(mut self, first: u64, at: Timestamp) -> Self {
        if self.next < first {
            self.behind.push_back(Missed::Hole(Hole { from: self.next, to: first - 1, at, per_agent: None }));
        }
        self
    }

    /// Returns `true` if the reader waits for its next event to be committed.
    pub(super) fn waits_for(&self, reach: Option<Reach>) -> bool {
        self.is_committed_only && reach.is_some_and(|reach| !reach.is_final && self.next > reach.committed)
    }

    /// Returns `true` if the reader sees only committed events and no further event will be
    /// committed.
    pub(super) fn is_ended(&self, reach: Option<Reach>) -> bool {
        self.is_committed_only && reach.is_some_and(|reach| reach.is_final && self.next > reach.committed)
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn pass(&mut self, seq: u64) {
        self.next = seq + 1;
    }

    /// Notes that the ring drops an event. Foreground events are retained for the caller: they are
    /// few, because their producers wait.
    pub(super) fn miss(&mut self, event: &AgentEvent, is_caller: bool) {
        if event.seq < self.next {
            return;
        }
        if is_caller && event.source().is_none_or(|source| source.task_id.is_none()) {
            self.behind.push_back(Missed::Event(event.clone()));
        } else if let Some(Missed::Hole(hole)) = self.behind.back_mut() {
            hole.count(event);
        } else {
            let per_agent = (!self.from_record).then(HashMap::new);
            let mut hole = Hole { from: event.seq, to: event.seq, at: event.at, per_agent };
            hole.count(event);
            self.behind.push_back(Missed::Hole(hole));
        }
    }

    /// Returns a retained event from before the ring; for a hole, a range of the record, or a
    /// [`Gap`](EventKind::Gap) with the origin `session`.
    pub(super) fn read_missed(&mut self, session: &Arc<Origin>, reach: Option<Reach>) -> Option<Read> {
        if let Some(found) = self.in_record(reach) {
            return Some(found);
        }
        let event = match self.behind.pop_front()? {
            Missed::Event(event) => event,
            Missed::Hole(hole) => hole.into_gap(session.clone()),
        };
        self.pass(event.seq);
        Some(Read::Event(event))
    }

    /// Returns the next hole if the record can fill it, now or soon.
    fn in_record(&self, reach: Option<Reach>) -> Option<Read> {
        let reach = reach.filter(|_| self.from_record)?;
        let Some(Missed::Hole(Hole { from, to, .. })) = self.behind.front() else { return None };
        match reach {
            Reach { committed, .. } if *from <= committed => {
                Some(Read::Fetch { from: *from, through: committed.min(*to) })
            }
            Reach { is_final: true, .. } => None,
            Reach { .. } => Some(Read::Nothing),
        }
    }

    /// Notes that the reader has got the record's events up to this.
    pub(super) fn filled(&mut self, through: u64) {
        self.pass(through);
        match self.behind.front_mut() {
            Some(Missed::Hole(hole)) if hole.to <= through => _ = self.behind.pop_front(),
            Some(Missed::Hole(hole)) => hole.from = through + 1,
            _ => {}
        }
    }

    /// Applies `amend` to the retained events.
    pub(super) fn amend(&mut self, amend: &impl Fn(&mut AgentEvent)) {
        let events = self.behind.iter_mut().filter_map(|kept| match kept {
            Missed::Event(event) => Some(event),
            Missed::Hole(_) => None,
        });
        events.for_each(amend);
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
        let name = |key: Option<AgentKey>| key.unwrap_or_else(|| AgentKey::from_lossy(ROOT));
        let per_agent = self.per_agent.into_iter().flatten().map(|(key, count)| (name(key), count)).collect();
        let (from_seq, to_seq) = (self.from, self.to);
        let kind =
            EventKind::Gap { from_seq, to_seq, missed: to_seq - from_seq + 1, per_agent, reason: None };
        AgentEvent::new(to_seq, self.at, session, kind)
    }
}
