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
    /// Whether what it has missed is read from the record, if there is one.
    from_record: bool,
    /// Whether it may see only what the record has, if there is one.
    pub(super) is_patient: bool,
    behind: VecDeque<Kept>,
    pub(super) waker: Option<Waker>,
}

enum Kept {
    Event(AgentEvent),
    Hole(Hole),
}

/// Consecutive events that the reader can no longer get.
struct Hole {
    from: u64,
    to: u64,
    at: Timestamp,
    /// Not known for events that were gone before the reader came; not counted for those that it
    /// reads from the record.
    per_agent: Option<HashMap<Option<AgentKey>, u64>>,
}

/// What a reader finds.
pub(crate) enum Read {
    Event(AgentEvent),
    /// No event: all there are have been read, or may not be shown before they are committed.
    Nothing,
    /// These, of which the record has what there is.
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
    /// It will not come further.
    pub(super) is_final: bool,
}

impl Reader {
    pub(super) fn new(next: u64, from_record: bool) -> Self {
        Self { next, from_record, is_patient: false, behind: VecDeque::new(), waker: None }
    }

    /// A reader that comes late: all before `first` is out of the ring, whose oldest event is of
    /// that time.
    pub(super) fn late(mut self, first: u64, at: Timestamp) -> Self {
        if self.next < first {
            self.behind.push_back(Kept::Hole(Hole { from: self.next, to: first - 1, at, per_agent: None }));
        }
        self
    }

    /// Returns `true` if the reader waits for its next event to be committed.
    pub(super) fn waits_for(&self, reach: Option<Reach>) -> bool {
        self.is_patient && reach.is_some_and(|reach| !reach.is_final && self.next > reach.committed)
    }

    /// Returns `true` if the reader sees only committed events and no further event will be
    /// committed.
    pub(super) fn is_ended(&self, reach: Option<Reach>) -> bool {
        self.is_patient && reach.is_some_and(|reach| reach.is_final && self.next > reach.committed)
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn pass(&mut self, seq: u64) {
        self.next = seq + 1;
    }

    /// The ring lets go of an event. For the caller, those of the foreground are kept: they are
    /// few, for their producers wait.
    pub(super) fn miss(&mut self, event: &AgentEvent, is_caller: bool) {
        if event.seq < self.next {
            return;
        }
        if is_caller && event.source().is_none_or(|source| source.task_id.is_none()) {
            self.behind.push_back(Kept::Event(event.clone()));
        } else if let Some(Kept::Hole(hole)) = self.behind.back_mut() {
            hole.count(event);
        } else {
            let per_agent = (!self.from_record).then(HashMap::new);
            let mut hole = Hole { from: event.seq, to: event.seq, at: event.at, per_agent };
            hole.count(event);
            self.behind.push_back(Kept::Hole(hole));
        }
    }

    /// What was kept for it, before what is in the ring; a hole as what the record has of it, or as
    /// a [`Gap`](EventKind::Gap) in the name of `session`.
    pub(super) fn read_kept(&mut self, session: &Arc<Origin>, reach: Option<Reach>) -> Option<Read> {
        if let Some(found) = self.in_record(reach) {
            return Some(found);
        }
        let event = match self.behind.pop_front()? {
            Kept::Event(event) => event,
            Kept::Hole(hole) => hole.into_gap(session.clone()),
        };
        self.pass(event.seq);
        Some(Read::Event(event))
    }

    /// Where a hole comes next that the record can fill, now or soon.
    fn in_record(&self, reach: Option<Reach>) -> Option<Read> {
        let reach = reach.filter(|_| self.from_record)?;
        let Some(Kept::Hole(Hole { from, to, .. })) = self.behind.front() else { return None };
        match reach {
            Reach { committed, .. } if *from <= committed => {
                Some(Read::Fetch { from: *from, through: committed.min(*to) })
            }
            Reach { is_final: true, .. } => None,
            Reach { .. } => Some(Read::Nothing),
        }
    }

    /// The reader has been given what the record has up to this.
    pub(super) fn filled(&mut self, through: u64) {
        self.pass(through);
        match self.behind.front_mut() {
            Some(Kept::Hole(hole)) if hole.to <= through => _ = self.behind.pop_front(),
            Some(Kept::Hole(hole)) => hole.from = through + 1,
            _ => {}
        }
    }

    /// Replaces what was kept by what `amend` makes of it.
    pub(super) fn amend(&mut self, amend: &impl Fn(&mut AgentEvent)) {
        let events = self.behind.iter_mut().filter_map(|kept| match kept {
            Kept::Event(event) => Some(event),
            Kept::Hole(_) => None,
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
        let name = |key: Option<AgentKey>| key.map_or_else(|| "root".to_owned(), |key| key.to_string());
        let per_agent = self.per_agent.into_iter().flatten().map(|(key, count)| (name(key), count)).collect();
        let (from_seq, to_seq) = (self.from, self.to);
        let kind =
            EventKind::Gap { from_seq, to_seq, missed: to_seq - from_seq + 1, per_agent, reason: None };
        AgentEvent::new(to_seq, self.at, session, kind)
    }
}
